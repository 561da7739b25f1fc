"""``./run.py list`` lists test cases, workloads and implementations, or tells all about some."""

import subprocess
import sys

from quicsat.cli.main import parse
from quicsat.cli.select_runs import select
from tests.cli.conftest import ROOT, Checkout, CommandLine


def test_list(checkout: Checkout) -> None:
    everything = checkout("list")[1]
    kinds = [checkout("list", kind)[1] for kind in ("tests", "workloads", "implementations")]
    assert everything == "\n".join(kind for kind in kinds if kind.strip())
    assert "\n  tiny" in kinds[0]
    assert "\n  odd" in kinds[2]


def test_a_name_or_an_abbreviation_shows_all_about_it(quicsat: CommandLine) -> None:
    lines = quicsat.out("list", "SAT", "sweep-loss", "page-p50", "picoquic").splitlines()
    assert "link          20.00 / 2.00 Mbit/s, RTT 600.0 ms, queue 25 packets, no loss" in lines
    assert "members       5: forward loss 0 %, 0.1 %, 1 %, 2 %, 5 %" in lines
    assert "objects       56" in lines
    assert "public image        privateoctopus/picoquic:latest" in lines


def test_an_unknown_name(quicsat: CommandLine) -> None:
    assert quicsat.refusal("list", "satlos").startswith('No test case "satlos". Did you mean satloss? To list all: ')


def test_groups_and_what_is_measured_by_default(quicsat: CommandLine) -> None:
    groups = {group.splitlines()[0]: [line.split()[0] for line in group.splitlines()[1:]]
              for group in quicsat.out("list", "tests").strip().split("\n\n")}  # fmt: skip
    assert groups["Measurements"] == ["goodput", "terrestrial", "sat", "crosstraffic", "satloss"]
    assert groups["Functional tests"][:2] == ["versionnegotiation", "handshake"]
    assert {"leo", "meo", "dama", "fade", "geo20"} <= {*groups["Satellite access"]}
    selected = select(parse(["-s", "quic-go", "-c", "quic-go"]), ROOT).selection.test_cases
    assert {case.name for case in selected} == {*groups["Functional tests"], *groups["Measurements"]}


def test_a_closed_pipe_is_no_fault() -> None:
    command = f"{sys.executable} run.py list; echo status $? >&2"
    done = subprocess.run(["bash", "-c", f"({command}) | true"], cwd=ROOT, capture_output=True, text=True, check=True)
    assert "Traceback" not in done.stderr
