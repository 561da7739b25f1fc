"""Links in test case files: what each scenario alone can do becomes a value, or a fault with file and line."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from interop.config.loader import load_known_test_cases, load_test_cases
from interop.model.emulated_link import (
    Blackhole,
    Corruption,
    CorruptionMode,
    CrossTraffic,
    LinkDirection,
    Rebind,
    TimersFrom,
    UniformLoss,
)
from interop.model.errors import InputError

ROOT = Path(__file__).resolve().parents[2]
KNOWN = load_known_test_cases(ROOT / "testcases")
PAPERS = {name: case for name, case in KNOWN.items() if name in ("terrestrial", "sat", "satloss")}


@pytest.fixture(autouse=True)
def in_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Messages name files relative to the working directory."""
    monkeypatch.chdir(tmp_path)


def write(link: str) -> Path:
    """A test case that extends sat, with its link in line 4."""
    path = Path("my.yaml")
    path.write_text(f"name: mine\nabbreviation: MINE\nextends: sat\nlink: {{{link}}}\n")
    return path


HOLE, NAT = Blackhole(5.0, 2.0), Rebind(1.0, 5.0)


@pytest.mark.parametrize(
    ("link", "expected"),
    [
        ("scenario: drop-rate, loss: {rate: 30 %, longest burst: 3}", {"return_loss": UniformLoss(0.3, 3)}),
        ("loss: {rate: 30 %, longest burst: 3}", {"forward_loss": UniformLoss(0.3, 3)}),
        ("scenario: corrupt-rate, corruption: 2 %", {"return_corruption": Corruption(0.02)}),
        (
            "scenario: corrupt-rate, corruption: 2 %, return corruption: {rate: 1 %, longest burst: 3, mode: loss}",
            {"forward_corruption": Corruption(0.02), "return_corruption": Corruption(0.01, 3, CorruptionMode.LOSS)},
        ),
        ("scenario: droplist, return drops: [2, 3]", {"forward_drops": (), "return_drops": (2, 3)}),
        ("scenario: droplist, drops: 1", {"forward_drops": (1,), "return_drops": (1,)}),
        ("scenario: blackhole, blackhole: {on: 5 s, off: 2 s}", {"blackhole": HOLE}),
        (
            "scenario: blackhole, blackhole: {on: 5 s, off: 2 s, repeat: 3, direction: return, from: start}",
            {"blackhole": Blackhole(5.0, 2.0, 3, LinkDirection.SERVER, TimersFrom.START)},
        ),
        ("scenario: rebind, rebind: {first: 1 s, period: 5 s}", {"rebind": NAT, "forward_rate": 20e6}),
        (
            "scenario: rebind, rebind: {first: 10 ms, address: true, from: first packet}",
            {"rebind": Rebind(0.01, None, address=True)},
        ),
        ("scenario: tcp-cross-traffic, cross traffic: {}", {"cross_traffic": CrossTraffic()}),
        (
            "scenario: tcp-cross-traffic, cross traffic: {congestion control: reno}",
            {"cross_traffic": CrossTraffic("reno")},
        ),
    ],
)
def test_links_of_the_interop_runner(link: str, expected: dict[str, object]) -> None:
    [mine] = load_test_cases(write(link), PAPERS)
    assert {name: getattr(mine.link, name) for name in expected} == expected


def test_what_a_scenario_does_is_extended_with_it_and_left_with_it() -> None:
    hole = "---\nname: a\nabbreviation: A\nextends: sat\nlink: {scenario: blackhole, blackhole: {on: 5 s, off: 2 s}}\n"
    longer = "---\nname: b\nabbreviation: B\nextends: a\nlink: {blackhole: {off: 3 s}, queue: 9}\n"
    back = "---\nname: c\nabbreviation: C\nextends: b\nlink: {scenario: asymmetric-p2p}\n"
    Path("my.yaml").write_text(hole + longer + back)
    links = {case.name: case.emulated for case in load_test_cases(Path("my.yaml"), PAPERS)}
    assert links["a"].blackhole == HOLE
    assert (links["b"].blackhole, links["b"].forward_queue) == (Blackhole(5.0, 3.0), 9)
    assert links["c"] == replace(PAPERS["sat"].emulated, forward_queue=9, return_queue=9)


@pytest.mark.parametrize(
    ("link", "fault"),
    [
        ("blackhole: {on: 5 s, off: 2 s}", 'my.yaml:4: "mine": blackhole needs scenario blackhole; this is asymmetric'),
        ("scenario: droplist, corruption: 1 %, drops: 1", "corruption needs scenario corrupt-rate; this is droplist."),
        ("scenario: blackhole", 'missing key "blackhole"; write for example blackhole: {on: 5 s, off: 2 s}'),
        ("scenario: rebind", 'missing key "rebind"; write for example rebind: {first: 1 s, period: 5 s}'),
        ("scenario: corrupt-rate", 'missing key "corruption"; write for example corruption: 2 %'),
        ("scenario: droplist", 'missing key "return drops"'),
        ("scenario: tcp-cross-traffic", 'missing key "cross traffic"'),
        ("scenario: drop-rate", 'missing key "loss"; write for example loss: {rate: 30 %, longest burst: 3}'),
        ("scenario: drop-rate, loss: {good to bad: 0.1, bad to good: 1}", "drop-rate loses packets independently"),
        ("scenario: blackhole, blackhole: 5 s", "blackhole must be a mapping; write for example blackhole: {on: 5 s"),
        ("scenario: blackhole, blackhole: {on: 5 s}", 'missing key "off"; write for example off: 2 s'),
        ("scenario: blackhole, blackhole: {on: 5 s, off: 2}", 'off "2" has no unit'),
        ("scenario: blackhole, blackhole: {on: 5 s, off: 0 s}", "1 ms to 1 h"),
        ("scenario: blackhole, blackhole: {on: 5 s, off: 2 s, repeat: 0}", "1 to 1000"),
        (
            "scenario: blackhole, blackhole: {on: 5 s, off: 2 s, direction: up}",
            '"up" is none of both, forward, ret',
        ),
        ("scenario: blackhole, blackhole: {on: 5 s, off: 2 s, from: now}", '"now" is none of first packet, start.'),
        ("scenario: rebind, rebind: {period: 1 s}", 'missing key "first"'),
        ("scenario: rebind, rebind: {first: 1 s, adress: true}", "Did you mean address? Allowed: first, period,"),
        ("scenario: rebind, rebind: {first: 1 s, address: yes}", "address must be true, false or null."),
        ("scenario: corrupt-rate, corruption: 0.02", 'corruption "0.02" has no unit'),
        ("scenario: corrupt-rate, corruption: {mode: loss}", 'missing key "rate"; write for example rate: 2 %'),
        ("scenario: corrupt-rate, corruption: {rate: 1 %, mode: lost}", 'mode "lost" is none of byte, loss. Did you'),
        ("scenario: droplist, drops: [0]", 'drops "0" is out of range: 1 to 1000000.'),
        ("scenario: droplist, drops: []", "drops is an empty list."),
        ("loss: {rate: 1 %, longest burst: 0}", 'longest burst "0" is out of range: 1 to 1000000.'),
        ("loss: {longest burst: 3}", 'missing key "rate"; write for example rate: 30 %'),
        ("loss: {rate: 1 %, good to bad: 0.1}", 'unknown key "good to bad". Allowed: rate, longest burst.'),
        (
            "scenario: tcp-cross-traffic, cross traffic: {congestion control: cubik}",
            '"cubik" is none of cubic, reno, bbr. Did you mean cubic?',
        ),
    ],
)
def test_faults_of_links_of_the_interop_runner(link: str, fault: str) -> None:
    path = write(link)
    with pytest.raises(InputError) as caught:
        load_test_cases(path, PAPERS)
    [problem] = caught.value.problems
    assert fault in problem
