"""The test cases that names on the command line select, and the faults."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

from quicsat.model.emulated_link import EmulatedLink
from quicsat.model.errors import InputError
from quicsat.model.test_case import COMBINED, TestCase, with_workload, without_labels
from quicsat.model.workload import WorkloadFiles
from quicsat.plan.select_names import listed, select, split

LoadTestCases = Callable[[Path, Mapping[str, TestCase], Mapping[str, TestCase]], tuple[TestCase, ...]]
"""Reads a file of test cases that may build on known ones and on those on request, and raises :class:`InputError`."""
ALL_MEASUREMENTS, ALL_FUNCTIONAL_TESTS = "onlyMeasurements", "onlyTests"
"""Words of the QUIC Interop Runner that select several test cases."""
NO_WORKLOADS: Mapping[str, WorkloadFiles] = MappingProxyType({})
NO_TEST_CASES: Mapping[str, TestCase] = MappingProxyType({})


def select_test_cases(
    names: Sequence[str],
    known: Mapping[str, TestCase],
    load: LoadTestCases,
    workloads: Mapping[str, WorkloadFiles] = NO_WORKLOADS,
    on_request: Mapping[str, TestCase] = NO_TEST_CASES,
) -> tuple[tuple[TestCase, ...], list[str]]:
    """The selected test cases (by default all on emulated links that are in no family), and the faults.

    A name is that of a test case or of a family, or its abbreviation, a file (it ends in .yaml or .yml, or contains a
    slash) with your own test cases, ``onlyTests`` or ``onlyMeasurements``. A test case or family and a workload,
    ``sat+page-p50``, are the objects of the workload over the link of the test case. Those ``on_request`` can be named,
    too; labels of your own files take precedence.
    """
    if not names:
        emulated = tuple(case for case in known.values() if _by_default(case))
        return emulated, [] if emulated else ["There is no test case."]
    words, own, problems = _read_files(names, known, load, on_request)
    available = {**known, **own}
    available |= without_labels(on_request, available)
    words = _members(words, available)
    combined, combined_problems = _combined([word for word in words if COMBINED in word], available, workloads)
    problems += combined_problems
    combined_names = {word: case.name for word, case in combined.items()}
    plain = [combined_names.get(word, word) for word in words if COMBINED not in word or word in combined_names]
    if problems and not plain:
        return (), problems
    abbreviations = {case.abbreviation: case.name for case in available.values()}
    available |= {case.name: case for case in combined.values()}
    selected, unknown = select(plain, available, "test case", abbreviations)
    return selected, problems + unknown


def _read_files(
    names: Sequence[str], known: Mapping[str, TestCase], load: LoadTestCases, on_request: Mapping[str, TestCase]
) -> tuple[list[str], dict[str, TestCase], list[str]]:
    """The names of test cases, those in files and those of whole kinds too; the test cases of files; and the faults."""
    words: list[str] = []
    own: dict[str, TestCase] = {}
    problems: list[str] = []
    for word in split(names) or [""]:
        if is_file(word):
            try:
                loaded = load(Path(word), {**known, **own}, on_request)
            except InputError as error:
                problems += error.problems
                continue
            own |= {case.name: case for case in loaded}
            words += [case.name for case in loaded]
        elif word.casefold() in (ALL_MEASUREMENTS.casefold(), ALL_FUNCTIONAL_TESTS.casefold()):
            functional = word.casefold() == ALL_FUNCTIONAL_TESTS.casefold()
            of_kind = [name for name, case in known.items() if case.functional is functional and _by_default(case)]
            words += of_kind
            if not of_kind:
                problems.append(f"{word} selects nothing. Known: {listed(known)}.")
        else:
            words.append(word)
    return words, own, problems


def _members(words: Sequence[str], known: Mapping[str, TestCase]) -> list[str]:
    """The words with the members of a family in place of its name, with a workload or without."""
    families: dict[str, list[str]] = {}
    for case in known.values():
        for label in {case.family.name, case.family.abbreviation} if case.family else ():
            families.setdefault(label.casefold(), []).append(case.name)
    split_words = [word.partition(COMBINED) for word in words]
    return [
        f"{name}{sign}{workload}"
        for word, sign, workload in split_words
        for name in families.get(word.strip().casefold(), [word])
    ]


def _combined(
    words: Sequence[str], known: Mapping[str, TestCase], workloads: Mapping[str, WorkloadFiles]
) -> tuple[dict[str, TestCase], list[str]]:
    """The test cases that ``words`` put together of a test case and a workload, by word; and the faults."""
    short_cases = {case.abbreviation: name for name, case in known.items()}
    short_workloads = {files.abbreviation: name for name, files in workloads.items()}
    combined: dict[str, TestCase] = {}
    problems: list[str] = []
    for word in words:
        left, _, right = (part.strip() for part in word.partition(COMBINED))
        cases, unknown = select([left], known, "test case", short_cases)
        chosen, missing = select([right], workloads, "workload", short_workloads)
        problems += unknown + missing
        if cases and chosen:
            try:
                combined[word] = with_workload(cases[0], chosen[0])
            except ValueError as fault:
                problems.append(f"{word} is impossible: {fault}")
    return combined, problems


def _by_default(case: TestCase) -> bool:
    """Whether it is meant where no test case is named: real links, families and WebTransport run only on request."""
    return isinstance(case.link, EmulatedLink) and case.family is None and case.webtransport is None


def is_file(word: str) -> bool:
    """Whether a word of ``-t`` names a file of test cases."""
    return "/" in word or word.casefold().endswith((".yaml", ".yml"))
