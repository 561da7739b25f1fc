"""What figures are drawn from that no synthetic campaign of measurements has: flows, variants, real links, series."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

from quicsat.model.family import Family, SweptValue
from quicsat.model.flow import flow_directory
from quicsat.model.implementation import CongestionControl
from quicsat.model.negotiated import Negotiated
from quicsat.model.objective import Objective
from quicsat.model.outcomes import Check, Outcome
from quicsat.model.real_link import Baseline, CaptureReport, RealDirection, RealLink, RealLinkReport
from quicsat.model.results import FlowResult, Measurement, ResultSet, RunResult
from quicsat.model.test_case import TestCase
from quicsat.report.plot_request import CampaignResults, PlotRequest
from quicsat.traces.series import save
from tests.campaign_builder import NAMES, Shape
from tests.campaign_builder import campaign as synthetic
from tests.flows_builder import BESIDE, flow_result
from tests.parity_builder import campaign as of_runs
from tests.parity_builder import over, over_tcp
from tests.plots.drawn import plot_request
from tests.results_builder import SAT, SATLOSS, result_set, run_result
from tests.runs_builder import campaign as with_series
from tests.series_builder import Transfer, series

SIZES = {1: (1, 1), 3: (3, 1), 16: (4, 4), 196: (14, 14)}
"""Pairs → servers and clients."""
FEW = 16
"""Pairs that have series, which take long to make."""
REAL = RealLink("modem", "far", RealDirection(20e6), RealDirection(2e6), 0.6)
Make = Callable[[int, Path], PlotRequest]


def ends(pairs: int) -> tuple[tuple[str, ...], tuple[str, ...]]:
    servers, clients = SIZES[pairs]
    return NAMES[:servers], NAMES[-clients:]


def shaped(pairs: int, *cases: TestCase, repetitions: int = 3, seed: int | None = None) -> ResultSet:
    servers, clients = ends(pairs)
    return synthetic(Shape(servers, clients, cases or (SAT, SATLOSS), repetitions, failing=0.05, noise_seed=seed))


def congestion_controls(pairs: int, _: Path) -> PlotRequest:
    """Each server with three algorithms, one of them unknown."""
    servers, clients = ends(pairs)
    variants = ("", ":cubic", ":bbr")
    names = tuple(f"{name}{variant}" for name in servers for variant in variants)
    made = synthetic(Shape(names, clients, (SAT, SATLOSS), 3, failing=0.05))
    known = tuple(
        replace(each, congestion_control=CongestionControl(each.name.partition(":")[2] or None))
        for each in made.manifest.implementations
    )
    return plot_request(replace(made, manifest=replace(made.manifest, implementations=known)))


def parity(pairs: int, _: Path) -> PlotRequest:
    """Each server with one client over QUIC, and all compared with the same pair over TCP."""
    servers, clients = ends(pairs)
    found = over_tcp(*(4.0 + number / 9 for number in range(3)))
    for place, server in enumerate(servers):
        for number, client in enumerate(clients):
            found += over(server, client, *(2.0 + place * 0.7 + (number * each % 3) for each in range(3)))
    return plot_request(of_runs(found))


def flows(pairs: int, place: Path) -> PlotRequest:
    """Runs with a second flow; up to ``FEW`` pairs have series."""
    servers, clients = ends(pairs)
    found = list[RunResult]()
    for number, (server, client) in enumerate((server, client) for server in servers for client in clients):
        both = (flow_result(server, client, 0.2 + 0.003 * number), flow_result("nginx-tcp", "curl", 0.8))
        values = {"goodput": both[0].goodput or 0.0, "jain_index": 0.8, "flow_share": both[0].share or 0.0}
        run = run_result(5e6, server=server, client=client, test_case=BESIDE.name)
        found.append(replace(run, measurement=Measurement(values, flows=both)))
        if number < FEW:
            _save(place / run.key.path, both)
    made = result_set(found, servers=servers, clients=clients, test_cases=(BESIDE,), repetitions=1)
    return PlotRequest((CampaignResults("c", made, place),), place)


def _save(place: Path, flows: tuple[FlowResult, ...]) -> None:
    for number, flow in enumerate(flows, start=1):
        directory = flow_directory(place, number)
        directory.mkdir(parents=True)
        save(series(Transfer(size=400_000, rate=flow.goodput or 0.0)), directory)


def members(pairs: int, _: Path) -> PlotRequest:
    """The same campaign twice, with other noise."""
    return replace(plot_request(shaped(pairs, seed=2)), baseline=shaped(pairs, seed=3))


def negotiated(pairs: int, _: Path) -> PlotRequest:
    """Each client and repetition with another window."""
    made = shaped(pairs, SAT)
    place = {name: number for number, name in enumerate(made.manifest.clients)}
    found = []
    for each in made.results:
        window = 2 ** (16 + (place[each.client] + each.repetition) % 10)
        facts = Negotiated(1, 0x1301, "h3", client={"initial_max_data": window}, server={})
        numbers = each.measurement and replace(each.measurement, negotiated=facts)
        found.append(replace(each, measurement=numbers))
    return plot_request(replace(made, results=tuple(found)))


def outcomes(pairs: int, _: Path) -> PlotRequest:
    """All functional tests, in which servers and tests take turns to fail."""
    servers, clients = ends(pairs)
    cases = tuple(replace(SAT, name=each, abbreviation=each[:3].upper(), check=each) for each in Check)
    ways = (Outcome.SUCCEEDED, Outcome.SUCCEEDED, Outcome.FAILED, Outcome.UNSUPPORTED, Outcome.TIMEOUT)
    found = [
        run_result(None, server=server, client=client, test_case=case.name, outcome=ways[(row + column) % len(ways)])
        for row, server in enumerate(servers)
        for client in clients
        for column, case in enumerate(cases)
    ]
    return plot_request(result_set(found, servers=servers, clients=clients, test_cases=cases, repetitions=1))


def releases(pairs: int, _: Path) -> PlotRequest:
    """Each server in three releases, of which the last is faster."""
    servers, clients = ends(pairs)
    names = tuple(f"{name}@1.{number}" for name in servers for number in range(3))
    made = synthetic(Shape(names, clients, (SAT, SATLOSS), 3, failing=0.05))
    known = tuple(replace(each, release=each.name.partition("@")[2]) for each in made.manifest.implementations)
    return plot_request(replace(made, manifest=replace(made.manifest, implementations=known)))


def sweep(pairs: int, _: Path) -> PlotRequest:
    """Five loss rates."""
    cases = tuple(
        replace(SAT, name=f"los-{rate}", abbreviation=f"LOS-{rate}",
                family=Family("lossy", "LOS", (SweptValue("loss", f"{rate} %", rate / 100, "%", 0.01),)))
        for rate in (0, 0.1, 0.5, 1, 5)
    )  # fmt: skip
    return plot_request(shaped(pairs, *cases))


def baseline(pairs: int, _: Path) -> PlotRequest:
    """A look at a real link each ten minutes, one for each pair."""
    case, begin = replace(SAT, name="astra", abbreviation="ASTRA", link=REAL), datetime(2026, 11, 20, tzinfo=UTC)
    found = []
    for number in range(pairs):
        taken = (begin + timedelta(minutes=10 * number)).strftime("%Y-%m-%dT%H:%M:%SZ")
        look = Baseline(taken, (0.6, 0.59 + 0.01 * (number % 7), None, 0.8), 0.1, 12e6 - 1e5 * (number % 9), 1e6)
        run = run_result(5e6, test_case=case.name, repetition=number + 1)
        report = RealLinkReport("modem", "far", 0.0, CaptureReport(9, 9, 0), CaptureReport(9, 9, 0), look)
        found.append(replace(run, evidence=replace(run.evidence, real_link=report)))
    return plot_request(result_set(found, test_cases=(case,), repetitions=pairs))


def with_traces(pairs: int, place: Path) -> PlotRequest:
    """Repetitions with series, of at most ``FEW`` pairs."""
    servers, clients = ends(pairs)
    every = [(server, client) for server in servers for client in clients][:FEW]
    return PlotRequest((with_series(place, every, size=2 * 2**20),), place, objectives=(Objective(1_000_000, 3.0),))


OVER_TIME = ("offset", "data-rate", "data-size", "packet-number", "packet-size", "return-path", "rtt")
MAKE: Mapping[str, Make] = {
    "congestion-controls": congestion_controls, "fairness": flows, "flows": flows, "members": members,
    "negotiated": negotiated, "outcomes": outcomes, "sweep": sweep, "sweep-map": sweep, "baseline": baseline,
    "releases": releases, "parity": parity,
    **dict.fromkeys((*OVER_TIME, "delivery", "objectives", "transports"), with_traces),
}  # fmt: skip
"""By plot."""
