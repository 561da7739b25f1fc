"""Loads implementations.json and test case files; reports all faults at once, with file and line."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from pathlib import Path

from interop.config.implementations import read_implementation
from interop.config.quantities import one_of
from interop.config.test_cases import read_test_case
from interop.config.yaml_fields import Fields, Problem, display_path, raise_problems, read_json, read_yaml
from interop.model.implementation import OWN_IMAGES, Implementation
from interop.model.names import NAME_RULE, is_name
from interop.model.test_case import TestCase
from interop.model.text import quoted

SCENARIOS = Path(__file__).resolve().parents[2] / "ns3-scenarios"
"""The scenarios that the simulator knows: each folder in here that holds a main.cc is one."""


def known_scenarios(folder: Path = SCENARIOS) -> tuple[str, ...]:
    """Names of the scenarios, in alphabetical order."""
    return tuple(sorted({source.parent.name for source in folder.glob("*/main.cc")}))


# ---- implementations ------------------------------------------------------------------------


def load_implementations(path: Path) -> dict[str, Implementation]:
    """Implementations by name, in the file's order.

    The format is that of the QUIC Interop Runner, ``{"quic-go": {"image": …, "url": …, "role": "both"}}``, with
    further optional keys, see :mod:`interop.config.implementations`. Raises :class:`InputError` with every fault.
    """
    problems: list[Problem] = []
    found: dict[str, Implementation] = {}
    entries = read_json(path, problems)
    if entries is not None:
        read = {name: _implementation(entries, name) for name in entries}
        found = {name: implementation for name, implementation in read.items() if implementation}
    if not found and not problems:
        problems.append(Problem(display_path(path), 0, "holds no implementation."))
    raise_problems(problems)
    return found


def _implementation(entries: Fields, name: str) -> Implementation | None:
    if not is_name(name):
        entries.note(f"{quoted(name)} is no name of an implementation: {NAME_RULE}.", entries.line_of(name))
    if name in OWN_IMAGES:
        entries.note(f'"{name}" is the name of an image of quicsat itself; choose another.', entries.line_of(name))
    fields = entries.mapping(name, about=f"{quoted(name)}: ")
    return read_implementation(name, fields) if fields.is_mapping else None


# ---- test cases -----------------------------------------------------------------------------


def load_known_test_cases(folder: Path, scenarios: Collection[str] | None = None) -> dict[str, TestCase]:
    """The test cases of all YAML files of a folder by name.

    Functional tests come first, in the order of their files, then measurements, the shortest deadline first.

    ``scenarios`` are those that the simulator knows, by default the folders of ns3-scenarios/.
    Raises :class:`InputError` with every fault of all files.
    """
    problems: list[Problem] = []
    documents: list[Fields] = []
    if not folder.is_dir():
        problems.append(Problem(display_path(folder), 0, "no such folder."))
    for path in sorted([*folder.glob("*.yaml"), *folder.glob("*.yml")]):
        documents += read_yaml(path, problems)
    found = _resolve(documents, {}, scenarios, problems)
    raise_problems(problems)
    tests = [case for case in found if case.functional]
    measurements = sorted((case for case in found if not case.functional), key=lambda case: (case.timeout, case.name))
    return {test_case.name: test_case for test_case in [*tests, *measurements]}


def load_test_cases(
    path: Path, known: Mapping[str, TestCase] | None = None, scenarios: Collection[str] | None = None
) -> tuple[TestCase, ...]:
    """The test cases of a YAML file of one or more documents, in the file's order.

    They may extend each other and those in ``known`` (name -> test case), and must differ from the latter in name and
    abbreviation, unless they are the same, read from the same file. Raises :class:`InputError` with every fault.
    """
    problems: list[Problem] = []
    file = display_path(path)
    documents = read_yaml(path, problems)
    if not documents and not problems:
        problems.append(Problem(file, 0, "holds no test case."))
    others = dict(known or {})
    if documents:
        own = path.resolve()
        others = {name: other for name, other in others.items() if Path(other.source).resolve() != own}
    found = _resolve(documents, others, scenarios, problems)
    raise_problems(problems)
    return tuple(found)


def _resolve(
    documents: Iterable[Fields],
    known: Mapping[str, TestCase],
    scenarios: Collection[str] | None,
    problems: list[Problem],
) -> list[TestCase]:
    """The documents as test cases, in their order; extended documents are read first."""
    mappings = [fields for fields in documents if fields.is_mapping]
    allowed = known_scenarios() if scenarios is None else scenarios
    if mappings and not allowed:
        problems.append(Problem(display_path(SCENARIOS), 0, "holds no scenario; the checkout is incomplete."))
    _check_labels(mappings, known)
    found = dict(known)
    read: dict[int, TestCase] = {}
    for fields in _bases_first(mappings):
        base_name = fields.read("extends", str)
        base = found.get(base_name or "")
        whole = base is not None or "extends" not in fields
        if test_case := read_test_case(fields, base, allowed, whole=whole):
            found[test_case.name] = read[id(fields)] = test_case
    _check_bases(mappings, known)
    return [read[id(fields)] for fields in mappings if id(fields) in read]


def _bases_first(documents: list[Fields]) -> list[Fields]:
    """Each document after the one that it extends; cycles are reported."""
    by_name: dict[str | None, Fields] = {}
    for fields in documents:
        by_name.setdefault(fields.read("name", str), fields)
    ordered: dict[int, Fields] = {}
    for fields in documents:
        chain: dict[int, Fields] = {}
        step: Fields | None = fields
        while step is not None and id(step) not in chain and id(step) not in ordered:
            chain[id(step)] = step
            step = by_name.get(step.read("extends", str)) if "extends" in step else None
        if step is not None and id(step) in chain:
            step.note("extends itself, directly or through others.", step.line_of("extends"))
        ordered.update(reversed(chain.items()))
    return list(ordered.values())


def _check_bases(documents: list[Fields], known: Mapping[str, TestCase]) -> None:
    names = [fields.read("name", str) or "" for fields in documents]
    for fields, own in zip(documents, names, strict=True):
        others = [name for name in dict.fromkeys([*known, *names]) if name not in ("", own)]
        if fields.read("extends", str) != own:
            fields.read("extends", one_of(others))


def _check_labels(documents: list[Fields], known: Mapping[str, TestCase]) -> None:
    """Names and abbreviations select test cases on the command line, so no two may share one, whatever its case."""
    taken = {
        label.casefold(): test_case.source
        for test_case in known.values()
        for label in (test_case.name, test_case.abbreviation)
    }
    for fields in documents:
        place = f"{fields.file}:{fields.line}"
        for key in ("name", "abbreviation"):
            label = fields.read(key, str) or ""
            owner = taken.setdefault(label.casefold(), place) if label else place
            if owner == place:
                continue
            hint = f' To build on it choose another name and write "extends: {label}".' if label in known else ""
            fields.note(f"{key} {quoted(label)} is taken already, by {owner}.{hint}", fields.line_of(key))
