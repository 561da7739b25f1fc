"""Reads a test case from a YAML document; faults are added to the problems of its fields."""

from collections.abc import Collection, Mapping
from dataclasses import replace

from quicsat.config.emulated_links import BLANK_LINK, LINK_EXAMPLE, read_link
from quicsat.config.file_sizes import FILE_SIZE_KEYS, read_file_sizes
from quicsat.config.flows import parse_flow
from quicsat.config.objectives import KEY as OBJECTIVES
from quicsat.config.objectives import read_objectives
from quicsat.config.quantities import count, duration, matching, member_of, one_line, one_of, within
from quicsat.config.real_links import means_real_link, read_real_link
from quicsat.config.test_case_limits import KEY as LIMITS
from quicsat.config.test_case_limits import read_limits
from quicsat.config.workloads import read_own_workload
from quicsat.config.yaml_fields import Fields
from quicsat.model.names import NAME_RULE, is_name
from quicsat.model.objective import MB, Objective
from quicsat.model.outcomes import Check
from quicsat.model.real_link import RealLink
from quicsat.model.test_case import TRANSFER, Link, TestCase, apply_workload, flow_fault
from quicsat.model.webtransport import WebTransport
from quicsat.model.workload import WorkloadFiles

RESERVED = ("onlytests", "onlymeasurements")
"""Words that select several test cases on the command line."""

NAMING_EXAMPLES = {"name": "leo", "abbreviation": "LEO"}
"""Keys that every test case must have -> an example of the value."""
EXAMPLES = {
    "description": "10 MiB over a satellite in low earth orbit",
    "link": LINK_EXAMPLE,
    "repetitions": "10",
    "timeout": "60 s",
}
"""Keys that a test case must have if it extends none -> an example of the value; and one of FILE_SIZE_KEYS, or a
workload."""
RANDOM_NUMBERS = "random numbers"
OWN, INHERITED = "own", "inherited"
FUNCTIONAL_KEYS = ("check", "certificate chain", "name length", "webtransport")
TEST_CASE_KEYS = (
    *NAMING_EXAMPLES,
    "extends",
    *EXAMPLES,
    *FILE_SIZE_KEYS,
    "workload",
    OBJECTIVES,
    "flows",
    "endpoint test",
    "server name",
    LIMITS,
    RANDOM_NUMBERS,
    *FUNCTIONAL_KEYS,
)


# ---- single values -------------------------------------------------------------


def parse_name(text: str) -> str:
    """The name of a test case, which is also the name of a folder and a word of the command line."""
    if not is_name(text) or text.endswith((".yaml", ".yml")):
        raise ValueError(f"must be {NAME_RULE}, and not end in .yaml or .yml.")
    if text in RESERVED:
        raise ValueError("selects several test cases on the command line; choose another name.")
    return text


_ENDPOINT_TEST = matching(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}", "one word of letters, digits, hyphens and underscores")
_RANDOM_NUMBERS = one_of((OWN, INHERITED))
_PARSERS = {
    "name": parse_name,
    "abbreviation": matching(r"[A-Za-z0-9][A-Za-z0-9-]{0,9}", "1 to 10 letters, digits and hyphens"),
    "description": one_line,
    "repetitions": within(count, "1", "10000"),
    "timeout": within(duration, "1 ms", "24 h"),
    "server name": one_of(("server4", "server6", "server46")),
    "check": member_of(Check),
    "certificate chain": within(count, "1", "20"),
    "name length": within(count, "8", "250"),
    "webtransport": member_of(WebTransport),
}
"""Keys with single values."""


# ---- test cases -----------------------------------------------------------------------------


def read_test_case(
    fields: Fields,
    base: TestCase | None,
    scenarios: Collection[str],
    workloads: Mapping[str, WorkloadFiles],
    *,
    whole: bool = True,
) -> TestCase | None:
    """The test case that ``fields`` describe; None if a fault was noted.

    Missing keys are inherited from ``base``, whose ``random_numbers_of`` is its ``random_name``; ``workloads`` are
    those that it may name. If not ``whole`` (the extended test case is faulty), missing keys are not reported.
    """
    faults = len(fields.problems)
    fields.allow_only(TEST_CASE_KEYS)
    fields.require(NAMING_EXAMPLES | (EXAMPLES if whole and base is None else {}))
    link = _read_link(fields, base.link if base else None, scenarios, whole=whole)
    file_sizes = read_file_sizes(fields, needed=whole and base is None and "workload" not in fields)
    client_test, server_test = _read_endpoint_tests(fields)
    inherited = base or _BLANK
    if inherited.workload is not None and file_sizes is not None:
        inherited = replace(inherited, workload=None, client_test=TRANSFER, server_test=TRANSFER)
    test_case = replace(
        inherited,
        **{"name": "", "abbreviation": ""} | fields.values(_PARSERS, chain_length="certificate chain"),
        link=link,
        file_sizes=inherited.file_sizes if file_sizes is None else file_sizes,
        client_test=client_test or inherited.client_test,
        server_test=server_test or inherited.server_test,
        source=fields.file,
        workload=None,
        objectives=_read_objectives(fields, inherited),
        flows=fields.read_list("flows", parse_flow) or inherited.flows,
        limits=read_limits(fields, inherited.limits),
        random_numbers_of=_read_random_numbers(fields, base),
    )
    if (files := _read_workload(fields, inherited, workloads)) is not None:
        test_case = apply_workload(test_case, files)
        if test_case.functional:
            fields.note("a functional test has no workload.", fields.line_of("workload"))
    if file_sizes == () and test_case.check is None and len(fields.problems) == faults:
        fields.note(
            "a measurement needs a file.", fields.line_of("file sizes" if "file sizes" in fields else "file size")
        )
    if len(fields.problems) == faults:
        _check_objectives(fields, test_case)
    if test_case.flows and (fault := flow_fault(test_case)) and len(fields.problems) == faults:
        fields.note(fault[0].lower() + fault[1:], fields.line_of("flows"))
    if test_case.webtransport is not None and len(fields.problems) == faults:
        _check_session(fields, test_case)
    if isinstance(link, RealLink) and test_case.check is not None and len(fields.problems) == faults:
        fields.note("a functional test needs an emulated link.", fields.line_of("link"))
    return test_case if len(fields.problems) == faults else None


def _read_objectives(fields: Fields, inherited: TestCase) -> tuple[Objective, ...]:
    """Those of the extended test case do not apply to a workload."""
    own = read_objectives(fields)
    if own is not None:
        return own
    return () if "workload" in fields else inherited.objectives


def _read_random_numbers(fields: Fields, base: TestCase | None) -> str:
    """The name that the random numbers of a test case follow from; empty: its own."""
    if fields.read(RANDOM_NUMBERS, _RANDOM_NUMBERS) != INHERITED:
        return ""
    if "extends" not in fields:
        fields.note(f"{RANDOM_NUMBERS}: a test case without extends inherits none.", fields.line_of(RANDOM_NUMBERS))
    return base.random_numbers_of if base else ""


def _check_session(fields: Fields, case: TestCase) -> None:
    """Report what does not fit a test of WebTransport, which must be a functional one."""
    line = fields.line_of("webtransport")
    if case.check is None:
        fields.note("webtransport needs a check: only functional tests use it.", line)
    elif bool(case.file_sizes) == (case.webtransport is WebTransport.HANDSHAKE):
        fields.note("webtransport: a handshake has no files, all others have some.", line)


def _check_objectives(fields: Fields, case: TestCase) -> None:
    """Report objectives that no run can meet, unless they are inherited."""
    if OBJECTIVES not in fields or not case.objectives:
        return
    largest = case.objectives[-1]
    if case.functional:
        fields.note("a functional test has no objectives.", fields.line_of(OBJECTIVES))
    elif largest.size > case.total_size:
        fault = f"{largest.name}, but all files together have {case.total_size / MB:g} MB; at most that is allowed."
        fields.note(f"{OBJECTIVES}: {fault}", fields.line_of(OBJECTIVES))


def _read_workload(fields: Fields, inherited: TestCase, workloads: Mapping[str, WorkloadFiles]) -> WorkloadFiles | None:
    """The workload of a test case, its own or the inherited one."""
    if "workload" in fields:
        for key in (*FILE_SIZE_KEYS, "endpoint test"):
            if key in fields:
                fields.note(f'write either "workload" or "{key}".', fields.line_of(key))
        return read_own_workload(fields, workloads)
    if inherited.workload is None:
        return None
    return WorkloadFiles(inherited.workload, "", "", inherited.file_sizes, 0.0)


def _read_link(fields: Fields, base: Link | None, scenarios: Collection[str], *, whole: bool) -> Link:
    if means_real_link(fields, base):
        return read_real_link(fields, base if isinstance(base, RealLink) else None, whole=whole)
    return read_link(fields, None if isinstance(base, RealLink) else base, scenarios, whole=whole)


_BLANK = TestCase("", "", "", BLANK_LINK, (), 0, 0)
"""Base of a test case that has none; each field that it lacks has been noted as missing."""


def _read_endpoint_tests(fields: Fields) -> tuple[str | None, str | None]:
    """TESTCASE of client and server: one word for both, or a mapping."""
    if not fields.holds_mapping("endpoint test"):
        word = fields.read("endpoint test", _ENDPOINT_TEST)
        return word, word
    roles = fields.mapping("endpoint test")
    roles.allow_only(("client", "server"))
    return roles.read("client", _ENDPOINT_TEST), roles.read("server", _ENDPOINT_TEST)
