"""Tables about links, runs and groups: exact on small results."""

from collections.abc import Iterator
from dataclasses import fields, is_dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import Any

import pytest

from quicsat.model.emulated_link import (
    Blackhole,
    ClientSide,
    ClientSideDirection,
    Corruption,
    CrossTraffic,
    Demand,
    GilbertElliottLoss,
    Jitter,
    Profile,
    Queue,
    QueueDiscipline,
    QueueUnit,
    Rebind,
    Reordering,
    UdpCrossTraffic,
    UniformLoss,
)
from quicsat.model.flow import Flow
from quicsat.model.gateways import EndpointTcp, Pep, Vpn, VpnProgram, VpnTransport
from quicsat.model.objective import MB, Objective
from quicsat.model.real_link import RealDirection, RealLink
from quicsat.model.results import Measurement, RunResult
from quicsat.model.run_limits import RunLimits
from quicsat.model.test_case import Link
from quicsat.model.units import MIB
from quicsat.model.workload import RequestOrder, Workload
from quicsat.report import run_tables
from quicsat.report.plot_request import PlotRequest
from tests.campaign_builder import TERRESTRIAL
from tests.results_builder import SAT, SATLOSS, result_set, run_result, runs
from tests.runs_builder import campaign


def told(result: RunResult, **values: float) -> RunResult:
    """With more numbers."""
    return replace(result, measurement=Measurement({**result.measurement.values, **values}))


def test_links_in_numbers() -> None:
    bursty = replace(SAT, abbreviation="B", link=SAT.emulated.with_forward(loss=GilbertElliottLoss(0.1, 0.3)))
    table = run_tables.links(result_set(), [TERRESTRIAL, SATLOSS, bursty])
    assert table.rows == (
        ("T", 20e6, 20e6, 0.03, *["25 packets"] * 2, 0.0, 0.0, 10485760, 60.0, "simple-p2p"),
        ("SATL", 20e6, 2e6, 0.6, *["25 packets"] * 2, 0.01, 0.01, 10485760, 360.0, "asymmetric-p2p"),
        ("B", 20e6, 2e6, 0.6, *["25 packets"] * 2, 0.25, 0.0, 10485760, 120.0,
         "asymmetric-p2p; forward loss P(b|g) 10 %, P(g|b) 30 %, 0 % in g, 100 % in b"),
    )  # fmt: skip


def fields_of(value: Any, place: str = "") -> Iterator[tuple[str, Any]]:
    """The values in a value that have no fields of their own, by their places, ``forward.queue.limit``."""
    for field in fields(value):
        own = getattr(value, field.name)
        if is_dataclass(own):
            yield from fields_of(own, f"{place}{field.name}.")
        else:
            yield f"{place}{field.name}", own


def changed(value: Any) -> Any:
    """Another value of the same kind."""
    match value:
        case StrEnum():
            return next(other for other in type(value) if other is not value)
        case bool():
            return not value
        case str():
            return f"{value}x"
        case tuple():
            return (*value[:-1], changed(value[-1]))
    return value * 2 + 1 if isinstance(value, int) else value / 2 or 0.5


def with_changed(value: Any, place: str) -> Any:
    """``value`` with another value in one place."""
    name, _, rest = place.partition(".")
    own = getattr(value, name)
    return replace(value, **{name: with_changed(own, rest) if rest else changed(own)})


RED = Queue(QueueDiscipline.RED, 60000, QueueUnit.BYTES, minimum=10, maximum=30, probability=0.1, weight=0.25)
CODEL = Queue(QueueDiscipline.CODEL, 100, target=0.005, interval=0.1, ecn=True, mark_above=0.01)
PROFILE = Profile("fade", 100.0, (0.0, 50.0), (20e6, 5e6), (0.3, 0.4), (0.0, 0.5), start=10.0)
OTHERS = UdpCrossTraffic(5e6, 540, 20.0)
CORRUPTION = Corruption(0.02, 3)
FORWARD = replace(
    SAT.emulated.forward, delay=0.2, queue=RED, loss=UniformLoss(0.01, 3), jitter=Jitter(0.01),
    reordering=Reordering(0.01, 0.2, 3), duplication=0.01, profile=PROFILE, udp_cross_traffic=OTHERS,
    corruption=CORRUPTION, drops=(3,),
)  # fmt: skip
BURSTS = GilbertElliottLoss(0.02, 0.5, 0.01, 0.9)
IMPAIRED = replace(
    SAT.emulated, forward=FORWARD, back=replace(FORWARD, delay=0.3, rate=2e6, queue=CODEL, loss=BURSTS),
    demand=Demand(0.0265, 0.56, 100, 64e3), blackhole=Blackhole(5.0, 2.0, 2), rebind=Rebind(1.0, 5.0),
    cross_traffic=CrossTraffic(), pep=Pep(2 * MIB, 4 * MIB, 20, "cubic"), endpoint_tcp=EndpointTcp(4 * MIB, 6 * MIB),
    vpn=Vpn(2 * MIB, 4 * MIB, VpnProgram.OPENVPN, VpnTransport.TCP),
    client_side=ClientSide(
        ClientSideDirection(0.001, UniformLoss(0.01, 3), 50e6, RED, Jitter(0.01)),
        ClientSideDirection(0.002, BURSTS, 20e6, CODEL, Jitter(0.02)),
    ),
)  # fmt: skip
REAL = RealLink("here", "there", RealDirection(20e6), RealDirection(2e6), 0.6, "provider", "tariff", "modem", "60 GB")


PLACES = [(link, place) for link in (IMPAIRED, REAL) for place, value in fields_of(link) if value is not None]


@pytest.mark.parametrize(("link", "place"), PLACES, ids=[place for _, place in PLACES])
def test_the_table_of_links_shows_every_property(link: Link, place: str) -> None:
    rows = [
        run_tables.links(result_set(), [replace(SAT, link=each)]).rows for each in (link, with_changed(link, place))
    ]
    assert rows[0] != rows[1]


def test_every_property_of_a_link_is_set_above() -> None:
    """A new field must be set there, and so be shown; a queue has only the fields that its discipline uses."""
    unset = {place for place, value in fields_of(IMPAIRED) if value is None}
    both = {name for way in ("forward.queue.", "back.queue.") for name in unset if name.startswith(way)}
    beside = {name for name in unset if name.startswith("client_side.")}
    assert {name.removeprefix("client_side.") for name in beside} <= both
    assert unset == both | beside
    assert {name.partition(".")[2] for name in both if name.replace("forward", "back") in unset
            and name.replace("back", "forward") in unset} == set()  # fmt: skip


def test_the_table_of_links_shows_what_is_transferred() -> None:
    workload = Workload("page", RequestOrder.ORDERED, (0,), duration=30.0)
    limits = RunLimits(2**30, 0.5, 100, 200, 300, 400)
    case = replace(SAT, workload=workload, flows=(Flow("a", "b", 2.0),), limits=limits)
    places = ["workload.name", "workload.requests", "workload.duration"]
    places += [f"limits.{field.name}" for field in fields(limits)]
    rows = {place: run_tables.links(result_set(), [with_changed(case, place)]).rows for place in places}
    alike = [place for place, row in rows.items() if row == run_tables.links(result_set(), [case]).rows]
    assert alike == []
    for other in (replace(case, flows=(Flow("a", "c", 2.0),)), replace(SAT, file_sizes=(5, 5))):
        assert run_tables.links(result_set(), [other]).rows != run_tables.links(result_set(), [case]).rows


def test_loss_is_the_mean_of_the_runs_and_the_longest_burst_of_all() -> None:
    one, two = runs(1e6, 1e6)
    gilbert = {"gilbert_gg": 0.98, "gilbert_gb": 0.9, "gilbert_bb": 0.1, "gilbert_bg": 0.02}
    results = result_set(
        [
            told(one, loss_forward=0.02, queue_loss=0.01, loss_return=0.0, gilbert_longest_burst=3, **gilbert),
            told(two, loss_forward=0.04, queue_loss=0.01, loss_return=0.02, gilbert_longest_burst=7, **gilbert),
        ]
    )
    both, queue = run_tables.loss(results, [SAT]).rows[:2]
    assert both[:3] == ("SAT", "all", "all")
    assert both[3:8] == pytest.approx((0.03, 0.98, 0.9, 0.1, 0.02))
    assert both[8:] == (7, 0.01, 2)
    assert queue == ("SAT", "all", "queue", 0.01, *[None] * 6, 2)
    assert [row[1:3] for row in run_tables.loss(results, [SAT, SATLOSS]).rows] == [
        (server, losses) for server in ("all", "picoquic") for losses in ("all", "queue")
    ]


def test_losses_of_the_link_stand_apart_from_those_of_the_queue() -> None:
    [run] = runs(1e6)
    mixed, own = {"gilbert_bb": 0.82}, {"link_gilbert_bb": 0.36, "link_gilbert_longest_burst": 4}
    result = told(run, loss_forward=0.05, queue_loss=0.03, link_loss=0.02, client_side_loss=0.01, **mixed, **own)
    rows = run_tables.loss(result_set([result]), [SAT]).rows
    assert [(row[2], row[3], row[6], row[8]) for row in rows[:4]] == [
        ("all", 0.05, 0.82, None),
        ("queue", 0.03, None, None),
        ("link", 0.02, 0.36, 4),
        ("client's side", 0.01, None, None),
    ]


def test_sweep_goes_from_no_loss_to_much() -> None:
    fast, slow = runs(8e6), runs(2e6, test_case="satloss")
    results = result_set([told(fast[0], completion_time=10.0), told(slow[0], completion_time=40.0)])
    table = run_tables.sweep(results, [SATLOSS, SAT, TERRESTRIAL])
    assert table.rows == (("SAT", 0.0, 10485760, 10.0, 8e6, 1.0, 1), ("SATL", 0.01, 10485760, 40.0, 2e6, 0.25, 1))


def test_runs_tell_start_steady_rate_and_burst() -> None:
    values = {"completion_time": 9.0, "startup_time": 2.0, "time_to_first_byte": 1.0, "steady_rate": 9e6,
              "longest_burst": 33.0, "sent_per_useful_byte": 1.2, "retransmitted": 0.1,
              "loss_forward": 0.03}  # fmt: skip
    results = result_set(
        [told(run_result(8e6), **values), run_result(7e6, repetition=2), run_result(None, repetition=3)]
    )
    assert run_tables.runs(results, [SAT]).rows == (
        ("SAT", "picoquic", "quiche", 1, 9.0, 2.0, 0.25, 9e6, 33, 1.2, 0.1, 0.03),
        ("SAT", "picoquic", "quiche", 2, *[None] * 8),
    )


def test_servers_have_medians() -> None:
    found = [
        told(run_result(1e6, repetition=number), initial_window=12_000.4, longest_burst=burst, rtt_95=0.61)
        for number, burst in enumerate((10, 40, 12), start=1)
    ]
    assert run_tables.senders(result_set(found), [SAT]).rows == (
        ("SAT", "picoquic", 12_000, None, 12, None, None, 0.61, 3),
    )


def test_the_least_steady_pair_comes_first() -> None:
    found = [
        told(run_result(1e6, server=server, repetition=number), completion_time=time)
        for server, times in (("a", (10.0, 11.0)), ("b", (10.0, 30.0, 20.0)))
        for number, time in enumerate(times, start=1)
    ]
    assert run_tables.times(result_set(found, servers=("a", "b")), [SAT]).rows == (
        ("SAT", "b", "quiche", 10.0, 20.0, 30.0, 3.0, 3),
        ("SAT", "a", "quiche", 10.0, 10.5, 11.0, 1.1, 2),
    )


def test_objectives_have_margins(tmp_path: Path) -> None:
    wanted = (Objective(2 * MB, 3.0), Objective(10 * MB, 5.0))
    made = campaign(tmp_path, repetitions=2, size=2_100_000, objectives=wanted)
    table = run_tables.objectives_met(PlotRequest((made,), tmp_path))
    [row] = table.rows
    assert row[:5] == ("SAT", "2 MB in 3 s", "quic-go", "aioquic", "no")
    assert row[5] == pytest.approx(3.25, abs=0.1)
    assert row[6] == pytest.approx(3 - float(str(row[5])))
    assert row[7:] == (0, 2)
    assert "the objectives of the test case." in table.notes[0]


def test_links_with_loss_have_no_objectives_of_their_own(tmp_path: Path) -> None:
    made = campaign(tmp_path, size=2_100_000)
    [case] = made.results.manifest.test_cases
    lossy = replace(case, link=case.emulated.with_forward(loss=UniformLoss(0.01)))
    stored = replace(made.results, manifest=replace(made.results.manifest, test_cases=(lossy,)))
    table = run_tables.objectives_met(PlotRequest((replace(made, results=stored),), tmp_path))
    assert table.rows == ()
    assert table.notes[-1] == "SAT has no objectives that its files can meet. Set objectives with --objective."


def test_objectives_of_ones_own(tmp_path: Path) -> None:
    asked = (Objective(MB, 4.0), Objective(5 * MB, 1.0))
    table = run_tables.objectives_met(PlotRequest((campaign(tmp_path, size=2_100_000),), tmp_path, objectives=asked))
    assert [(row[1], row[4], row[7]) for row in table.rows] == [("1 MB in 4 s", "yes", 3)]
    assert "the objectives set with --objective." in table.notes[0]


# ---- groups ---------------------------------------------------------------------------------

EFFICIENCIES = {"a": (0.5, 0.4), "b": (0.48, 0.42), "c": (0.3, 0.02), "d": (0.29, 0.03), "e": (0.31, 0.02)}


def test_groups_of_pairs_and_their_members() -> None:
    found = [
        run_result(share * 20e6, server=server, test_case=case)
        for server, shares in EFFICIENCIES.items()
        for case, share in zip(("sat", "satloss"), shares, strict=True)
    ]
    results = result_set(found, servers=tuple(EFFICIENCIES), test_cases=(SAT, SATLOSS), repetitions=1)
    groups, members = run_tables.groups_of_pairs(results, "SAT", "SATL")
    assert [row[:2] for row in groups.rows] == [("1", 2), ("2", 3)]
    assert [row[3] for row in groups.rows] == pytest.approx([0.41, 0.07 / 3])
    assert [row[4:] for row in groups.rows] == [("unknown 2", "a 1, b 1"), ("unknown 3", "c 1, d 1, e 1")]
    assert [row[:3] for row in members.rows] == [
        ("1", "a", "quiche"), ("1", "b", "quiche"), ("2", "c", "quiche"), ("2", "d", "quiche"), ("2", "e", "quiche"),
    ]  # fmt: skip
    assert groups.notes[0].startswith(
        "The table covers the n = 5 pairs with a successful repetition in both test cases. The groups come from"
    )
    assert "strong structure" in groups.notes[0]


def test_groups_of_runs() -> None:
    found = [
        told(run_result(1e6, server=server, repetition=number), startup_time=start, sent_per_useful_byte=sent,
             steady_rate=rate + number)
        for server, start, sent, rate in (("a", 1.0, 1.05, 9e6), ("b", 8.0, 1.6, 2e6))
        for number in (1, 2, 3)
    ]  # fmt: skip
    groups, members = run_tables.groups_of_runs(result_set([*found, run_result(2e6, server="c")],
                                                            servers=("a", "b", "c")), SAT)  # fmt: skip
    assert [(row[:2], row[6]) for row in groups.rows] == [(("1", 3), "a 3"), (("2", 3), "b 3")]
    assert groups.rows[0][2:6] == pytest.approx((1.0, 1.05, 9e6 + 2, 0.05))
    assert groups.rows[1][2:6] == pytest.approx((8.0, 1.6, 2e6 + 2, 0.05))
    assert [row[:4] for row in members.rows][-1] == ("2", "b", "quiche", 3)
    assert groups.notes[0].startswith("The table covers the n = 6 successful runs")


def test_no_groups_where_there_are_no_numbers() -> None:
    groups, members = run_tables.groups_of_runs(result_set(runs(1e6)), SAT)
    assert (groups.rows, members.rows) == ((), ())
    assert groups.notes == (
        "Too few of the n = 0 successful runs for which all of these values are known differ to form groups.",
    )
