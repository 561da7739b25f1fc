"""Loads implementations.json and test case files; reports all faults at once, with file and line."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path

from quicsat.config.implementations import read_implementation
from quicsat.config.sweeps import check_member, members, swept_keys
from quicsat.config.test_cases import read_test_case
from quicsat.config.workloads import load_workloads
from quicsat.config.yaml_fields import (
    Fields,
    Problem,
    check_link,
    display_path,
    raise_problems,
    read_json,
    read_yaml,
    yaml_files,
)
from quicsat.model import product_files
from quicsat.model.implementation import OWN_IMAGES, Implementation
from quicsat.model.names import MEMBER_SIGN, NAME_RULE, did_you_mean, is_name
from quicsat.model.stored_files import entries, resolved
from quicsat.model.test_case import TestCase
from quicsat.model.text import command_line, quoted
from quicsat.model.workload import WorkloadFiles

SCENARIOS = product_files.FILES / "ns3-scenarios"
"""The scenarios that the simulator knows: each folder in here that holds a main.cc is one."""

WORKLOADS = "workloads"
"""Folder beside test cases with the workloads that they may name, in addition to those that quicsat brings."""


def known_workloads(folder: Path | None = None) -> dict[str, WorkloadFiles]:
    """The workloads for test cases in ``folder`` by name; raises :class:`InputError` with every fault."""
    brought = product_files.FILES / "testcases"
    found = load_workloads(brought / WORKLOADS)
    if folder is None or folder.resolve() == brought:
        return found
    return dict(sorted((found | load_workloads(resolved(folder) / WORKLOADS)).items()))


def known_scenarios(folder: Path = SCENARIOS) -> tuple[str, ...]:
    """Names of the scenarios, in alphabetical order."""
    return tuple(sorted({source.parent.name for source in folder.glob("*/main.cc")}))


# ---- implementations ------------------------------------------------------------------------


def load_implementations(path: Path) -> dict[str, Implementation]:
    """Implementations by name, in the file's order.

    The format is that of the QUIC Interop Runner, ``{"quic-go": {"image": …, "url": …, "role": "both"}}``, with
    further optional keys, see :mod:`quicsat.config.implementations`. Raises :class:`InputError` with every fault, also
    if a link leads to the file.
    """
    problems: list[Problem] = []
    found: dict[str, Implementation] = {}
    listed = read_json(path, problems, follow=False)
    if listed is not None:
        read = {name: _implementation(listed, name) for name in listed}
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


def load_known_test_cases(folder: Path, extended: Mapping[str, TestCase] | None = None) -> dict[str, TestCase]:
    """The test cases of all YAML files of a folder by name, :func:`in_order`.

    They may extend those in ``extended``, whose names and abbreviations are free. Raises :class:`InputError` with every
    fault of all files, and if one of them is a link.
    """
    problems: list[Problem] = []
    if not folder.is_dir():
        problems.append(Problem(display_path(folder), 0, "no such folder."))
    documents = [fields for path in yaml_files(folder) for fields in read_yaml(path, problems, follow=False)]
    return in_order({case.name: case for case in _resolve(documents, folder, {}, extended or {}, problems)})


def in_order(cases: Mapping[str, TestCase]) -> dict[str, TestCase]:
    """Functional tests first, in the order of ``cases``, then measurements, the shortest deadline first.

    Members of a family with the same deadline are in the order of its values.
    """
    tests = [case for case in cases.values() if case.functional]
    measurements = [case for case in cases.values() if not case.functional]
    measurements.sort(key=lambda case: (case.timeout, case.random_name))
    return {case.name: case for case in [*tests, *measurements]}


def load_cases_on_request(folder: Path, known: Mapping[str, TestCase]) -> dict[str, TestCase]:
    """The test cases in the subfolders of a folder by name, in the order of their files; they run only if named.

    They may extend those in ``known``, and each other. Raises :class:`InputError` with every fault of all files.
    """
    problems: list[Problem] = []
    subfolders = [path for path in entries(folder.absolute()) if path.is_dir() and path.name != WORKLOADS]
    for subfolder in subfolders:
        check_link(subfolder, problems)
    paths = (path for subfolder in subfolders for path in yaml_files(subfolder))
    documents = [fields for path in paths for fields in read_yaml(path, problems, follow=False)]
    return {case.name: case for case in _resolve(documents, folder, known, {}, problems)}


def load_test_cases(
    path: Path, known: Mapping[str, TestCase] | None = None, on_request: Mapping[str, TestCase] | None = None
) -> tuple[TestCase, ...]:
    """The test cases of a YAML file of one or more documents, in the file's order.

    They may extend each other and those in ``known`` and ``on_request`` (name -> test case), and must differ from those
    in ``known`` in name and abbreviation, unless they are the same, read from the same file. Raises
    :class:`InputError` with every fault.
    """
    problems: list[Problem] = []
    documents = read_yaml(path, problems)
    if not documents and not problems:
        problems.append(Problem(display_path(path), 0, "holds no test case."))
    others = dict(known or {})
    if documents:
        own = path.resolve()
        same = {source for source in {other.source for other in others.values()} if Path(source).resolve() == own}
        others = {name: other for name, other in others.items() if other.source not in same}
    return tuple(_resolve(documents, path.parent, others, on_request or {}, problems))


def _resolve(
    documents: Iterable[Fields],
    folder: Path,
    known: Mapping[str, TestCase],
    on_request: Mapping[str, TestCase],
    problems: list[Problem],
) -> list[TestCase]:
    """The documents as test cases, in their order, families as their members; extended documents are read first.

    Those ``on_request`` can be extended, but their names and abbreviations are free. ``folder`` may have workloads.
    Raises :class:`InputError` with all ``problems``, those of the caller too.
    """
    mappings = [fields for fields in documents if fields.is_mapping]
    allowed = known_scenarios()
    if mappings and not allowed:
        problems.append(Problem(display_path(SCENARIOS), 0, "holds no scenario; quicsat is not whole."))
    _check_labels(mappings, known)
    workloads = known_workloads(folder) if any("workload" in fields for fields in mappings) else {}
    own_names = {fields.read("name", str) for fields in mappings}
    found = {name: case for name, case in on_request.items() if own_names.isdisjoint((name, *_of_family(case)))}
    found |= known
    read: dict[int, list[TestCase]] = {}
    for fields in _bases_first(mappings):
        base_name = fields.read("extends", str)
        base = found.get(base_name or "")
        whole = base is not None or "extends" not in fields
        base = replace(base, family=None, random_numbers_of=base.random_name) if base else None
        own: list[TestCase] = []
        if not swept_keys(fields):
            own += filter(None, [read_test_case(fields, base, allowed, workloads, whole=whole)])
        else:
            for member in members(fields):
                if case := read_test_case(member.fields, base, allowed, workloads, whole=whole):
                    own.append(member.named(case))
                    check_member(fields, own[-1])
        read[id(fields)] = own
        found |= {case.name: case for case in own}
    _check_bases(mappings, found)
    raise_problems(problems)
    return [case for fields in mappings for case in read.get(id(fields), ())]


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
            base = (step.read("extends", str) or "").partition(MEMBER_SIGN)[0]
            step = by_name.get(base) if base else None
        if step is not None and id(step) in chain:
            step.note("extends itself, directly or through others.", step.line_of("extends"))
        ordered.update(reversed(chain.items()))
    return list(ordered.values())


def _check_bases(documents: list[Fields], known: Mapping[str, TestCase]) -> None:
    """Report names of bases that are none; ``known`` are the test cases, with those of the documents."""
    names = [fields.read("name", str) or "" for fields in documents]
    families = {case.family.name for case in known.values() if case.family}
    for fields, own in zip(documents, names, strict=True):
        others = {name for name in (*known, *names) if name not in ("", own)}
        base = fields.read("extends", str)
        if base in families and base != own:
            member = next(name for name, case in known.items() if case.family and case.family.name == base)
            fields.note(f"{base} is a family; extend a member of it, like {member}.", fields.line_of("extends"))
        elif base is not None and base not in {own, *others}:
            hint = did_you_mean(base, (others | families) - {own})
            fields.note(
                f"extends {quoted(base)} is no test case.{hint} To list all: {command_line('list', 'tests')}",
                fields.line_of("extends"),
            )


def _of_family(case: TestCase) -> tuple[str, ...]:
    return (case.family.name, case.family.abbreviation) if case.family else ()


def _check_labels(documents: list[Fields], known: Mapping[str, TestCase]) -> None:
    """Names and abbreviations select test cases on the command line, so no two may share one, whatever its case."""
    taken = {
        label.casefold(): test_case.source
        for test_case in known.values()
        for label in (test_case.name, test_case.abbreviation, *_of_family(test_case))
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
