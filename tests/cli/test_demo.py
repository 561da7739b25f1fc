"""The command demo: two campaigns, in virtual time at an engine without root access."""

import pytest

from quicsat.cli import commands, demo, main, run, setup
from quicsat.cli.program import Program
from quicsat.model.clock import Clock
from quicsat.model.errors import MachineError
from quicsat.results import store
from tests.cli.conftest import Checkout

CAMPAIGNS = ("-s good -c good -t tiny", "-s good -c good bad -t tiny --repetitions 2")


@pytest.fixture(autouse=True)
def _ready(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(setup, "prepare", lambda: None)
    monkeypatch.setattr(demo, "_clock", lambda: Clock.REAL)


def test_it_runs_all_campaigns(checkout: Checkout, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demo, "CAMPAIGNS", CAMPAIGNS)
    assert checkout.out("demo", status=1).count("tiny: 3 kB over a terrestrial link") == 2
    documents = sorted((checkout.root / "results").glob("2*"))
    assert [store.load(path).result_set.manifest.command for path in documents] == [
        ("run.py", *line.split()) for line in CAMPAIGNS
    ]


def test_failed_runs_do_not_keep_the_second_campaign_from_beginning(
    checkout: Checkout, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(demo, "CAMPAIGNS", CAMPAIGNS[::-1])
    assert checkout("demo")[0] == 1
    assert len([*(checkout.root / "results").glob("2*")]) == 2


@pytest.mark.parametrize(("status", "campaigns"), [(0, 2), (3, 1), (75, 1), (130, 1)])
def test_without_root_it_uses_virtual_time_and_another_status_ends_it(
    status: int, campaigns: int, checkout: Checkout, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(demo, "CAMPAIGNS", CAMPAIGNS)
    monkeypatch.setattr(demo, "_clock", lambda: Clock.VIRTUAL)
    clocks = list[Clock]()

    def measure(options: run.Options, _program: Program) -> int:
        clocks.append(options.clock)
        return status

    monkeypatch.setattr(commands.load("run"), "run", measure)
    assert (checkout("demo")[0], clocks) == (status, [Clock.VIRTUAL] * campaigns)


def test_a_machine_that_is_not_ready_ends_it(checkout: Checkout, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail() -> None:
        raise MachineError("no engine")

    monkeypatch.setattr(setup, "prepare", fail)
    assert checkout("demo") == (3, "", "no engine\n")
    assert not (checkout.root / "results").exists()


def test_its_campaigns_can_be_parsed() -> None:
    parsed = [vars(main.parse(line.split())) for line in demo.CAMPAIGNS]
    assert [each["test"] for each in parsed] == [["terrestrial", "sat"], ["satloss"]]
