"""Test cases: what is transferred over which link, how often, and what must hold."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

from quicsat.model.emulated_link import UNKNOWN, EmulatedLink
from quicsat.model.family import Family
from quicsat.model.flow import MOST_FLOWS, Flow
from quicsat.model.names import FLOW_SIGN, is_test_case
from quicsat.model.objective import Objective
from quicsat.model.outcomes import Check, Rules
from quicsat.model.real_link import RealLink
from quicsat.model.role import Protocol, Role
from quicsat.model.run_limits import RunLimits
from quicsat.model.units import byte_size
from quicsat.model.webtransport import WebTransport
from quicsat.model.workload import RequestOrder, Workload, WorkloadFiles

MOST_SIZES = 8
"""Different sizes of files that are listed one by one."""
Link = EmulatedLink | RealLink
"""What carries the packets of a test case."""


def constant_rate(link: Link) -> float | None:
    """Rate of the forward link, bit/s; None if it is unknown, or if a profile changes it."""
    if isinstance(link, EmulatedLink) and link.forward.profile is not None and link.forward.profile.rates:
        return None
    return path_rate(link) or None


def path_rate(link: Link) -> float:
    """Rate of the slowest link to the client, bit/s; with a profile, of its mean rate; 0 if it is unknown."""
    return link.on_path(link.forward.rate) if isinstance(link, EmulatedLink) else link.forward.rate


@dataclass(frozen=True)
class TestCase:
    """What is transferred over which link, how often, and what must hold."""

    __test__ = False  # pytest: not a class of tests

    name: str
    abbreviation: str
    description: str
    link: Link
    file_sizes: tuple[int, ...]
    """Bytes of each file that the client has to fetch."""
    repetitions: int
    timeout: float
    """Deadline of the transfer, from the start of the client, seconds."""
    client_test: str = "transfer"
    server_test: str = "transfer"
    """What the endpoints see as TESTCASE."""
    server_name: str = "server4"
    """Host part of the URLs: server4, server6 or server46."""
    source: str = ""
    """File that the test case was read from."""
    check: Check | None = None
    """What a functional test must pass; None for a measurement."""
    rules: Rules = Rules.STANDARD
    chain_length: int = 1
    """Certificates that the server sends: the leaf and those between it and the root."""
    name_length: int = 16
    """Characters of each file's name."""
    workload: Workload | None = None
    """How the files are fetched; None: all at once."""
    family: Family | None = None
    """None unless it is a member of a family."""
    objectives: tuple[Objective, ...] = ()
    """How soon so much must have arrived, the smallest first; those larger than all files together do not apply."""
    flows: tuple[Flow, ...] = ()
    """Further flows beside that of the pair."""
    webtransport: WebTransport | None = None
    """What happens in a WebTransport session; None: the files are fetched over streams of the connection itself."""
    limits: RunLimits | None = None
    """Its own limits of what a run may use and leave; None if it has none."""
    random_numbers_of: str = ""
    """The :attr:`random_name` of the test case whose random numbers it has; empty: its own."""

    @property
    def emulated(self) -> EmulatedLink:
        """Its link, which must be emulated; raises TypeError if it is real."""
        if isinstance(self.link, EmulatedLink):
            return self.link
        raise TypeError(f"{self.name} has a real link")

    @property
    def real(self) -> bool:
        """Whether its link is a real one."""
        return isinstance(self.link, RealLink)

    @property
    def has_gateways(self) -> bool:
        """Whether something stands between its endpoints and its emulated link."""
        return isinstance(self.link, EmulatedLink) and self.link.has_gateways

    @property
    def tunnelled(self) -> bool:
        """Whether the packets of the endpoints pass its emulated link inside those of a VPN."""
        return isinstance(self.link, EmulatedLink) and self.link.vpn is not None

    @property
    def partly_known(self) -> bool:
        """Whether it comes from a file of another runner, with at most its link's rate and its time limit."""
        return isinstance(self.link, EmulatedLink) and self.link.scenario == UNKNOWN

    @property
    def own_limits(self) -> RunLimits:
        """Its own limits, all None if it has none."""
        return self.limits or RunLimits()

    @property
    def functional(self) -> bool:
        """Whether runs of it only pass or fail."""
        return self.check is not None

    @property
    def storing(self) -> tuple[Role, ...]:
        """The sides that store files."""
        return (Role.CLIENT,) if self.webtransport is None else self.webtransport.storing

    @property
    def random_name(self) -> str:
        """What its random numbers follow from beside the campaign's seed.

        Members of a family have the same ones, and so has a test case with other further flows.
        """
        own = self.family.name if self.family else self.name
        return self.random_numbers_of or own.partition(FLOW_SIGN)[0]

    @property
    def labels(self) -> tuple[str, ...]:
        """Its name and abbreviation, and its family's."""
        family = (self.family.name, self.family.abbreviation) if self.family else ()
        return (self.name, self.abbreviation, *family)

    def has_label(self, label: str) -> bool:
        """Whether ``label`` is one of its labels, upper and lower case being alike."""
        return label.casefold() in map(str.casefold, self.labels)

    @property
    def total_size(self) -> int:
        """Bytes of all files together."""
        return sum(self.file_sizes)

    @property
    def flow_count(self) -> int:
        """Flows of a run."""
        return 1 + len(self.flows)

    @property
    def ends_at_deadline(self) -> bool:
        """Whether a run lasts for a given time, at the end of which the client is stopped."""
        return self.workload is not None and self.workload.duration is not None


def files_in_words(case: TestCase) -> str:
    """``10 MiB``, ``5 × 2 MiB``, ``1 MiB + 10 MiB``; of many sizes their number and range."""
    sizes = dict.fromkeys(case.file_sizes)
    if len(sizes) == 1 and len(case.file_sizes) > 1:
        return f"{len(case.file_sizes)} × {byte_size(case.file_sizes[0])}"
    if len(sizes) > MOST_SIZES:
        return f"{len(case.file_sizes)} × {byte_size(min(sizes))} to {byte_size(max(sizes))}"
    return " + ".join(byte_size(size) for size in case.file_sizes)


TRANSFER, MULTICONNECT, ORDERED, RESUMPTION = "transfer", "multiconnect", "ordered", "resumption"
PROTOCOL_TESTS = {Protocol.HQ: TRANSFER, Protocol.H3: "http3", Protocol.TCP: "tcp"}
"""The TESTCASE in which endpoints transfer files over a protocol."""
ORDERED_TESTS = {Protocol.HQ: ORDERED, Protocol.H3: f"{ORDERED}-http3"}
"""The TESTCASE in which clients ask for files as REQUESTS_AFTER says."""
HTTP2_TESTS = {TRANSFER: "http2"} | {test: f"{test}-http2" for test in (ORDERED, MULTICONNECT, RESUMPTION)}
"""The TESTCASE in which clients fetch several files over TCP, by that in which they do so over QUIC."""
COMBINED = "+"
"""Between the names of a test case and of the workload that it is combined with: ``sat+page-p50``."""


def with_workload(case: TestCase, files: WorkloadFiles) -> TestCase:
    """``case`` with the objects of a workload in place of its own files, without the objectives of these.

    ValueError if it cannot have them.
    """
    if case.functional:
        raise ValueError(f"{case.name} is a functional test, whose files are part of it.")
    if case.workload is not None:
        raise ValueError(f"{case.name} has a workload of its own.")
    mixed = f"{files.description} over the link of {case.name}"
    end = f"{COMBINED}{files.workload.name}"
    return apply_workload(
        replace(
            _with_label_ends(case, end, f"-{files.abbreviation}"),
            description=mixed[0].upper() + mixed[1:],
            objectives=(),
            random_numbers_of=case.random_numbers_of and f"{case.random_numbers_of}{end}",
        ),
        files,
    )


def _with_label_ends(case: TestCase, name: str, abbreviation: str) -> TestCase:
    """``case`` with ends of its labels and those of its family."""
    family = case.family
    if family:
        family = replace(family, name=family.name + name, abbreviation=family.abbreviation + abbreviation)
    return replace(case, name=case.name + name, abbreviation=case.abbreviation + abbreviation, family=family)


def with_flows(case: TestCase, flows: tuple[Flow, ...]) -> TestCase:
    """``case`` with further flows; ValueError if it cannot have them."""
    if case.flows:
        raise ValueError(f"{case.name} has further flows of its own.")
    label = "".join(f"{FLOW_SIGN}{flow.label}" for flow in flows)
    fault = flow_fault(replace(case, flows=flows))
    if fault or not is_test_case(case.name + label):
        raise ValueError(fault or f"{case.name + label} is too long for a name.")
    beside = f"{case.description}, beside {' and '.join(flow.words for flow in flows)}"
    return replace(_with_label_ends(case, label, label), description=beside, flows=flows)


def flow_fault(case: TestCase) -> str:
    """Why ``case`` cannot have the further flows that it has, as a sentence; empty if it can."""
    link = case.link
    if case.flow_count > MOST_FLOWS:
        return f"{case.flow_count} flows are too many: a run has at most {MOST_FLOWS}."
    if case.functional:
        return "A functional test has one flow."
    if not isinstance(link, EmulatedLink):
        return "Further flows need an emulated link."
    if link.rebind:
        return "Further flows cannot pass a NAT."
    return ""


def apply_workload(case: TestCase, files: WorkloadFiles) -> TestCase:
    """``case`` with the files of a workload and the TESTCASE by which endpoints fetch them so."""
    workload, sizes, timeout = files.workload, files.file_sizes, max(case.timeout, files.timeout)
    if workload.duration is not None:
        rate = case.link.forward.highest_rate
        sizes = (math.ceil(workload.duration * rate / 8),)  # more than can arrive in that time
        timeout = workload.duration
    tests = {
        RequestOrder.CONCURRENT: (TRANSFER, TRANSFER),
        RequestOrder.SEPARATE: (MULTICONNECT, MULTICONNECT),
        RequestOrder.ORDERED: (ORDERED, TRANSFER),
    }
    client, server = tests[workload.requests]
    return replace(case, workload=workload, file_sizes=sizes, timeout=timeout, client_test=client, server_test=server)


def without_labels(cases: Mapping[str, TestCase], others: Mapping[str, TestCase]) -> dict[str, TestCase]:
    """The ``cases`` that share no name or abbreviation with one of the ``others``."""
    labels = {label.casefold() for case in others.values() for label in case.labels}
    return {name: case for name, case in cases.items() if labels.isdisjoint(map(str.casefold, case.labels))}
