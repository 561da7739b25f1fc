"""Results of runs and of whole campaigns."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field, replace
from functools import cached_property

from quicsat.model.clock import Clock, clock_in_words
from quicsat.model.cpu_cost import costs_in_words
from quicsat.model.evidence import Evidence
from quicsat.model.implementation import Implementation, Protocol, Role
from quicsat.model.names import is_named
from quicsat.model.negotiated import Negotiated
from quicsat.model.outcomes import Outcome, Verdict
from quicsat.model.perturbation import NONE, Amplitudes
from quicsat.model.run_key import RunKey
from quicsat.model.test_case import TestCase
from quicsat.model.workload import ObjectType

Pair = tuple[str, str]
"""Names of the server and of the client."""
PARAMETERS = ("CLIENT_PARAMS", "SERVER_PARAMS", "CRON", "PROTOCOLS_CLIENT", "PROTOCOLS_SERVER")
"""Environment variables of this program that endpoints get (docs/reference/endpoint-contract.md)."""


@dataclass(frozen=True)
class ObjectTimes:
    """When one object of a workload was asked for and arrived; seconds since the client's first packet."""

    size: int
    """Bytes of the file."""
    type: ObjectType | None
    """None if the workload is no page."""
    requested: float
    """When the first byte of the request left; over a connection of its own, when that connection began."""
    first_byte: float
    """When the first byte of the response arrived at the client."""
    finished: float
    """When its last new byte arrived."""
    blocked: float
    """How long bytes of it that had arrived waited for earlier ones of the same stream, seconds."""

    @property
    def duration(self) -> float:
        """From the request to the last byte."""
        return self.finished - self.requested


@dataclass(frozen=True)
class FlowResult:
    """One of several flows of a run; times are seconds after the first packet of the first flow's client."""

    server: str
    client: str
    """Names of implementations or variants."""
    protocol: Protocol
    start: float
    """When its client sent its first packet."""
    first_byte: float | None
    """When the first new byte of the response arrived at the client; None if none did, or streams cannot be read."""
    last_byte: float | None
    size: int
    """New bytes of the response that arrived; over TCP with those of TLS."""
    goodput: float | None
    """``size`` over the time from its first to its last byte, bit/s."""
    competing_goodput: float | None
    """The same while all flows receive, bit/s; None if they never do so at the same time."""
    share: float | None
    """Of the goodput of all flows in that time, 0 to 1."""
    loss_forward: float | None
    """Share of its packets that were lost on their way to the client."""
    queueing_delay_median: float | None
    """Of its packets to the client, seconds beyond the fastest packet of all flows."""
    queueing_delay_95: float | None


@dataclass(frozen=True)
class Measurement:
    """The numbers of one run; units and labels are in ``quicsat.analysis.metrics.METRICS``."""

    values: dict[str, float]
    notes: tuple[str, ...] = ()
    """Restrictions of these numbers, e.g. that no key log allowed to check the stream."""
    objects: tuple[ObjectTimes, ...] = ()
    """In the order of the requests; empty without a workload, and where the streams cannot be read."""
    flows: tuple[FlowResult, ...] = ()
    """All flows of the run, in the order of the test case; empty if there is one alone."""
    negotiated: Negotiated | None = None
    """None if nothing could be read, and in results of versions that did not store it."""
    sending_times: tuple[float, ...] = ()
    """When the server had sent the first new byte of the response, and equal shares of all until the last one; seconds
    since the client's first packet. Empty where the streams cannot be read, and in results of earlier versions."""


@dataclass(frozen=True)
class RunResult:
    """Result of one attempt at a run: outcome, evidence and numbers; one line of the journal."""

    server: str
    client: str
    test_case: str
    repetition: int
    attempt: int
    """Counted from 1; more than 1 after attempts that were excluded or repeated on request."""
    verdict: Verdict
    evidence: Evidence
    measurement: Measurement | None = None
    protocol: Protocol = Protocol.HQ

    @property
    def key(self) -> RunKey:
        """The run that this attempt belongs to."""
        return RunKey(self.server, self.client, self.test_case, self.repetition)


@dataclass(frozen=True)
class Compliance:
    """Whether an image answers an unknown test name with exit status 127, in one role."""

    implementation: str
    role: Role
    compliant: bool
    reason: str
    image: str
    """Image id."""
    output: str = ""
    """Of an image that is not compliant, the last lines that the container wrote."""


@dataclass(frozen=True)
class Provenance:
    """What an image is made from, according to its labels; empty if it has none."""

    source: str = ""
    """Package and version that it is built from; from the label org.quicsat.source, as the names of the others."""
    repository: str = ""
    """Address of the stack's sources, from org.opencontainers.image.source."""
    revision: str = ""
    """Commit of the sources, from org.opencontainers.image.revision; empty if unknown."""
    patches: tuple[str, ...] | None = None
    """Names of the package's patches that the build applied; None if unknown."""
    changes: str = ""
    """What our Dockerfile changes in the sources beyond that."""
    build_type: str = ""
    gso: str = ""
    """``yes`` or ``no``: whether the program sends several UDP datagrams with one call (UDP_SEGMENT)."""
    checksum: str = ""
    """Of the archive of a release that was chosen by name, as its registry writes it: ``h1:…`` or ``sha256:…``."""


@dataclass(frozen=True)
class ImageFacts:
    """An image as it was used in a campaign."""

    reference: str
    id: str
    digests: tuple[str, ...] = ()
    created: str = ""
    size: int = 0
    version: str = ""
    """Of the implementation, from the image's label org.opencontainers.image.version; empty if unknown."""
    source: str = ""
    """local, pulled or built."""
    provenance: Provenance = Provenance()
    architecture: str = ""
    """Kind of processor that it is for, in the words of images (``amd64``, ``arm64``); empty if it does not tell, and
    in campaigns of versions that did not store it."""

    @property
    def short_id(self) -> str:
        """The first 12 digits of the id."""
        return self.id.removeprefix("sha256:")[:12]


@dataclass(frozen=True)
class Schedule:
    """Options that ``resume`` uses again."""

    testbeds: int | None = 1
    """Most runs at the same time; None for as many as the CPUs allow."""
    breaker: int | None = None
    """As in :class:`quicsat.plan.limits.CampaignLimits`."""
    budget: float | None = None
    """The same."""
    required: str | None = None
    """The same."""
    skip_on_failure: bool = False
    """The same."""


@dataclass(frozen=True)
class Versions:
    """Versions of the programs with which a campaign began; empty if unknown.

    Each result names the Docker Engine of its own host. Results do not depend on tshark.
    """

    quicsat: str = ""
    """Output of ``git describe --always --dirty`` in the checkout, else the version of the package."""
    engine: str = ""
    """Docker Engine of the machine that ran the campaign."""
    simulator: str = ""
    """The simulator's image; empty without emulated links, as the next."""
    ns3: str = ""
    """The simulator's ns-3, from its image's label org.quicsat.source: ``Debian libns3-dev 3.43``."""


@dataclass(frozen=True)
class Manifest:
    """Everything about a campaign that is known before its first run."""

    id: str
    started: str
    """UTC, RFC 3339."""
    command: tuple[str, ...]
    tool_version: str
    seed: int
    servers: tuple[str, ...]
    clients: tuple[str, ...]
    implementations: tuple[Implementation, ...]
    test_cases: tuple[TestCase, ...]
    images: dict[str, ImageFacts]
    """By implementation name, ``simulator`` and ``link-tools``."""
    planned_runs: int
    options: dict[str, bool] = field(default_factory=dict)
    """``check_compliance``, ``qlog``, ``keep_files``, ``shuffle``: options that
    ``resume`` uses again."""
    shard: str = ""
    """``2/4``: this campaign is the second part of four; empty if it is the whole plan."""
    must_include: tuple[str, ...] = ()
    """Each pair contains one of these implementations; empty if all pairs of servers and clients were planned."""
    pairs: tuple[str, ...] = ()
    """``SERVER/CLIENT``: only these pairs were planned; empty if all pairs of servers and clients were."""
    schedule: Schedule = Schedule()
    parameters: dict[str, str] | None = None
    """``PARAMETERS`` with which the campaign began; ``resume`` uses them. None in
    campaigns of versions that did not store them."""
    versions: Versions | None = None
    """None in campaigns of versions of quicsat that did not store them."""
    clock: Clock = Clock.REAL
    """The clock of all runs."""
    cpu_cost: float | None = None
    """In campaigns of versions before cost models: simulated seconds of a system call and of a reading of the clock."""
    own_cpu_costs: bool = False
    """In the same campaigns: system calls of implementations with a CPU cost of their own took that time instead."""
    cpu_cost_factor: float | None = None
    """Of the costs in all cost models; None in real time, and in campaigns of versions before cost models."""
    amplitudes: Amplitudes = NONE
    """How much the repetitions differ from the first one beside their losses."""
    placebo: bool = False
    """The repetitions have other CPU costs than those of other campaigns with these amplitudes."""
    processor: str = ""
    """Of the machine on which all runs take place, as in ``HostFacts``; empty with several machines, with the Docker
    daemon of another one, and in campaigns of versions that did not store it."""
    note: str = ""
    """The user's own words on the conditions, such as the weather over a real link."""

    def tests(self, server: str, client: str) -> bool:
        """Whether one of the two is under test; all are if the campaign does not say which are."""
        return not self.must_include or any(is_named(name, self.must_include) for name in (server, client))

    @property
    def time(self) -> str:
        """The clock in words: ``real time``, or ``virtual time (CPU costs of cost models; placebo)``.

        Results of campaigns in which it differs are never put together.
        """
        differences = "" if self.amplitudes == NONE else self.amplitudes.words
        costs = costs_in_words(self.cpu_cost_factor, self.cpu_cost, own=self.own_cpu_costs)
        return clock_in_words(self.clock, costs, differences, placebo=self.placebo)


@dataclass(frozen=True)
class ResultSet:
    """All results of a campaign so far."""

    manifest: Manifest
    compliance: tuple[Compliance, ...]
    results: tuple[RunResult, ...]
    finished: str | None
    """UTC, RFC 3339; None while the campaign runs or after it was cut short."""
    earlier: tuple[RunResult, ...] = ()
    """All other attempts at the runs in ``results``: excluded ones, and those repeated on request."""
    placebo: tuple[RunResult, ...] = ()
    """Of a baseline: the same runs, measured again with an irrelevant difference."""
    selected: tuple[Pair, ...] | None = None
    """The pairs that a user has chosen, see ``of_pairs``; None for all of the campaign."""
    filtered: bool = False
    """Whether a user has chosen runs by facts: pairs without such a run in a test case are then none of it."""
    lacked: int | None = None
    """``lacking`` before a user has chosen pairs or runs; None if these are all."""

    @cached_property
    def by_test_case(self) -> dict[str, list[RunResult]]:
        """``results`` by the name of their test case, in their order."""
        groups: dict[str, list[RunResult]] = {}
        for result in self.results:
            groups.setdefault(result.test_case, []).append(result)
        return groups

    @cached_property
    def virtual_only(self) -> frozenset[tuple[str, str, str]]:
        """Server, client and test case of the pairs that were known to differ in real time; none with other CPU costs
        than those of ``implementations.json``."""
        if self.manifest.cpu_cost_factor != 1:
            return frozenset()
        known = {each.name: each.virtual_only for each in self.manifest.implementations if each.virtual_only.links}
        keys = {(each.server, each.client, each.test_case) for each in self.results if each.server in known}
        return frozenset(key for key in keys if known[key[0]].contains(*key[1:]))

    @cached_property
    def planned(self) -> tuple[Pair, ...]:
        """The pairs of the campaign, measured or not: for each client, in the order of the manifest, its servers."""
        manifest = self.manifest
        protocols = {each.name: {*each.protocols} for each in manifest.implementations}
        measured = {(each.server, each.client) for each in self.results}
        pairs = ((server, client) for client in manifest.clients for server in manifest.servers)
        return tuple(
            pair
            for pair in pairs
            if pair in measured
            or (
                manifest.tests(*pair)
                and (not manifest.pairs or "/".join(pair) in manifest.pairs)
                and protocols[pair[0]] & protocols[pair[1]]
            )
        )

    @cached_property
    def pairs(self) -> tuple[Pair, ...]:
        """Those of ``planned`` that a user has chosen, or whose runs are."""
        chosen = {(each.server, each.client) for each in self.results} if self.filtered else self.selected
        return tuple(pair for pair in self.planned if chosen is None or pair in chosen)

    def of_pairs(self, pairs: Collection[Pair]) -> ResultSet:
        """The results of these pairs; all if there are none."""
        if not pairs:
            return self
        chosen = {*pairs}
        results, earlier, placebo = (
            tuple(each for each in many if (each.server, each.client) in chosen)
            for many in (self.results, self.earlier, self.placebo)
        )
        return replace(
            self, results=results, earlier=earlier, placebo=placebo, selected=tuple(pairs), lacked=self.lacking
        )

    @property
    def done(self) -> frozenset[RunKey]:
        """Runs that have a result which counts: ``resume`` repeats those that ended in an error."""
        return frozenset(result.key for result in self.results if result.verdict.outcome is not Outcome.ERROR)

    @property
    def made(self) -> frozenset[RunKey]:
        """Runs that are made: those that are done and, once the campaign has ended, those that ended in an error."""
        return self.done if self.finished is None else frozenset(result.key for result in self.results)

    @property
    def lacking(self) -> int:
        """How many runs of the plan are not made, or whose results are lost."""
        return max(0, self.manifest.planned_runs - len(self.made)) if self.lacked is None else self.lacked
