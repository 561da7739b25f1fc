"""Small results made by hand for tests: ``result_set`` and ``run_result`` with defaults for what a test leaves open."""

from collections.abc import Iterable, Mapping
from dataclasses import replace

from quicsat.model.clock import Clock
from quicsat.model.emulated_link import Direction, EmulatedLink, UniformLoss
from quicsat.model.evidence import Evidence, Exit
from quicsat.model.implementation import Implementation, Role, VirtualOnly, VirtualOnlyLink
from quicsat.model.outcomes import ErrorCode, Outcome, Verdict
from quicsat.model.results import Compliance, ImageFacts, Manifest, Measurement, ResultSet, RunResult
from quicsat.model.test_case import TestCase
from quicsat.model.units import MBPS, MIB
from quicsat.plan.run_seed import run_seed

SAT = TestCase(
    name="sat",
    abbreviation="SAT",
    description="10 MiB over a geostationary satellite link",
    link=EmulatedLink("asymmetric-p2p", Direction(0.3, 20 * MBPS, 25), Direction(0.3, 2 * MBPS, 25)),
    file_sizes=(10 * MIB,),
    repetitions=10,
    timeout=120.0,
    source="testcases/sat.yaml",
)
SATLOSS = replace(
    SAT,
    name="satloss",
    abbreviation="SATL",
    description="10 MiB over a geostationary satellite link that loses 1 % of the packets",
    link=SAT.emulated.with_both(loss=UniformLoss(0.01)),
    timeout=360.0,
)
USUAL_CODE = {
    Outcome.SUCCEEDED: ErrorCode.NONE,
    Outcome.FAILED: ErrorCode.FILE_SIZE,
    Outcome.TIMEOUT: ErrorCode.TIMEOUT,
    Outcome.UNSUPPORTED: ErrorCode.UNSUPPORTED,
    Outcome.ERROR: ErrorCode.DAEMON_FAULT,
    Outcome.SKIPPED: ErrorCode.BUDGET,
}


def implementation(name: str, *roles: Role) -> Implementation:
    """An implementation in both roles unless told otherwise."""
    url = f"https://{name}.example"
    return Implementation(name, f"example/{name}:latest", url, frozenset(roles or Role), build=f"endpoints/{name}")


def run_result(
    goodput: float | None = 5.0 * MBPS,
    *,
    server: str = "picoquic",
    client: str = "quiche",
    test_case: str = "sat",
    repetition: int = 1,
    attempt: int = 1,
    outcome: Outcome | None = None,
    code: ErrorCode | None = None,
    reason: str = "",
    forward_rate: float = 20 * MBPS,
    phases: Mapping[str, float] | None = None,
) -> RunResult:
    """A run that reached ``goodput`` bit/s or, without goodput, one that timed out unless ``outcome`` says else."""
    outcome = outcome or (Outcome.TIMEOUT if goodput is None else Outcome.SUCCEEDED)
    succeeded = outcome is Outcome.SUCCEEDED and goodput is not None
    return RunResult(
        server=server,
        client=client,
        test_case=test_case,
        repetition=repetition,
        attempt=attempt,
        verdict=Verdict(outcome, USUAL_CODE[outcome] if code is None else code, reason),
        evidence=Evidence(
            started=f"2026-11-21T06:{repetition % 60:02}:00Z",
            seed=run_seed(1, test_case.partition("~")[0], repetition),
            phases=dict(phases or {"create": 1.0, "ready": 0.5, "transfer": 20.0, "collect": 0.4, "remove": 0.6}),
            client=Exit(0 if succeeded else 1),
            server=Exit(None, killed=True),
        ),
        measurement=Measurement({"goodput": goodput, "efficiency": goodput / forward_rate})
        if succeeded and goodput is not None
        else None,
    )


def runs(
    *goodputs: float | None, server: str = "picoquic", client: str = "quiche", test_case: str = "sat"
) -> list[RunResult]:
    """Repetitions 1, 2, … of one pair; None is a timeout."""
    return [
        run_result(goodput, server=server, client=client, test_case=test_case, repetition=repetition)
        for repetition, goodput in enumerate(goodputs, start=1)
    ]


def result_set(
    results: Iterable[RunResult] = (),
    *,
    servers: tuple[str, ...] = ("picoquic",),
    clients: tuple[str, ...] = ("quiche",),
    test_cases: tuple[TestCase, ...] = (SAT,),
    repetitions: int | None = None,
    compliance: tuple[Compliance, ...] = (),
    images: Mapping[str, ImageFacts] | None = None,
    finished: str | None = "2026-11-21T08:00:00Z",
) -> ResultSet:
    """Results of a campaign; ``repetitions`` overrides those of all test cases."""
    if repetitions is not None:
        test_cases = tuple(replace(test_case, repetitions=repetitions) for test_case in test_cases)
    names = tuple(dict.fromkeys((*servers, *clients)))
    manifest = Manifest(
        id="2026-11-21T06-00-00Z",
        started="2026-11-21T06:00:00Z",
        command=("./run.py", "-t", "sat"),
        tool_version="0.1.0",
        seed=1,
        servers=servers,
        clients=clients,
        implementations=tuple(implementation(name) for name in names),
        test_cases=test_cases,
        images=dict(images or {}),
        planned_runs=len(servers) * len(clients) * sum(test_case.repetitions for test_case in test_cases),
    )
    return ResultSet(manifest, compliance, tuple(results), finished)


def virtual_only(results: ResultSet, *clients: str, server: str = "picoquic", test_case: str = "sat") -> ResultSet:
    """In virtual time, with measured CPU costs, where it is known that these pairs differ in real time."""
    known = VirtualOnly("2026-11-28", (VirtualOnlyLink(test_case, clients),))
    made = virtual(results).manifest
    implementations = tuple(
        replace(each, virtual_only=known) if each.name == server else each for each in made.implementations
    )
    return replace(results, manifest=replace(made, cpu_cost_factor=1.0, implementations=implementations))


def virtual(results: ResultSet, *, clock: Clock = Clock.VIRTUAL, cpu_cost: float | None = 3e-6) -> ResultSet:
    """The same campaign with this clock, on a known processor."""
    manifest = replace(results.manifest, clock=clock, cpu_cost=cpu_cost, processor=results.manifest.processor or "CPU")
    return replace(results, manifest=manifest)
