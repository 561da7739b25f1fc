"""``./run.py calibrate``: what it measures, the models of stored results, and how it writes them."""

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from quicsat.cli import calibrate, console
from quicsat.config.inventory import Inventory
from quicsat.config.loader import load_implementations
from quicsat.model.cpu_cost import DEFAULT, CostModel
from quicsat.model.errors import InputError
from quicsat.model.outcomes import Outcome
from quicsat.results.store import write_result_json
from tests.cli.conftest import ROOT, Checkout, CommandLine
from tests.costs_builder import TRUE, campaign
from tests.results_builder import result_set, runs

CASES = ("-t", "sat", "satloss", "sat+connections")
ENTRY = {"url": "https://mine.example", "role": "both", "image": "example/mine"}


@pytest.fixture
def stored(tmp_path: Path) -> Path:
    """Results in real time of the server ``mine``."""
    return store(tmp_path / "stored")


def store(place: Path, model: CostModel = TRUE) -> Path:
    place.mkdir()
    write_result_json(place, campaign(model))
    return place


@pytest.fixture
def own(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> CommandLine:
    """A folder with implementations of the user's own."""
    folder = tmp_path / "own"
    folder.mkdir()
    (folder / "implementations.json").write_text(json.dumps({"other": ENTRY, "mine": ENTRY}, indent=2) + "\n")
    return CommandLine(folder, capsys)


def options(*words: str) -> calibrate.Options:
    found = calibrate.Options()
    found.names, found.partners, found.test, found.repetitions = list(words), [], [], 2
    return found


def test_each_role_is_measured_with_its_partners_under_all_workloads() -> None:
    found = calibrate.plan(options("quic-go", "nginx", "curl"), Inventory(ROOT), 1)
    assert {run.test_case.name for run in found} == set(calibrate.TESTS)
    assert {run.client.name for run in found if run.server.name == "nginx"} >= {"quic-go", "quiche"}
    assert {run.server.name for run in found if run.client.name == "quic-go"} >= {"quic-go", "quiche", "msquic"}
    assert not any(run.server.name == "curl" or run.client.name == "nginx" for run in found)
    assert len(set(found)) == len(found)
    assert max(run.repetition for run in found) == 2


def test_models_and_errors_of_stored_results(
    quicsat: CommandLine, stored: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a terminal of 80 columns, with the notes below."""
    monkeypatch.setattr(console, "width", lambda: 80)
    for words in ((), ("mine",)):
        lines = quicsat.out("calibrate", *words, "--from", stored, *CASES).splitlines()
        models, errors = ([cell.strip() for cell in line.split("│")[1:-1]] for line in lines if "│ mine" in line)
        assert models[0] == errors[0] == "mine, server"
        sent = float(models[4])
        assert sent == pytest.approx(TRUE.datagram_sent * 1e6, rel=0.2)
        assert errors[1] == str(len(campaign().results))
        assert max(map(float, errors[2:4])) < 3
        assert max(map(len, lines)) <= 80


def test_several_campaigns_are_fitted_together(quicsat: CommandLine, stored: Path, tmp_path: Path) -> None:
    lines = quicsat.out("calibrate", "mine", "--from", stored, store(tmp_path / "more"), *CASES).splitlines()
    errors = [cell.strip() for cell in [line for line in lines if "│ mine" in line][1].split("│")[1:-1]]
    assert errors[1] == str(2 * len(campaign().results))


def test_other_test_cases_only_judge(quicsat: CommandLine, stored: Path) -> None:
    lines = quicsat.out("calibrate", "--from", stored, "-t", "sat", "sat+connections").splitlines()
    errors = [cell.strip() for cell in [line for line in lines if "│ mine" in line][1].split("│")[1:-1]]
    assert errors[1] == str(len(campaign().results) * 2 // 3)
    assert 0 < float(errors[5]) < 4
    assert "mine, server" in quicsat.out("calibrate", "--from", stored, status=1)


def test_models_are_written_to_the_users_own_file(own: CommandLine, stored: Path) -> None:
    file = own.root / "implementations.json"
    before = file.read_text()
    own.out("calibrate", "mine", "--from", stored, *CASES)
    assert file.read_text() == before
    own.out("calibrate", "mine", "--from", stored, *CASES, "--write")
    cost = load_implementations(file)["mine"].cpu_cost
    assert isinstance(cost.server, CostModel)
    assert cost.server.handshake == pytest.approx(TRUE.handshake, rel=0.2)
    assert (cost.client, cost.measured, cost.processor) == (DEFAULT, "2026-11-21", "A Processor")
    assert json.loads(file.read_text())["other"] == ENTRY


def test_models_that_implementations_json_cannot_have_change_nothing(own: CommandLine, tmp_path: Path) -> None:
    file = own.root / "implementations.json"
    before = file.read_text()
    slow = store(tmp_path / "slow", replace(TRUE, datagram_sent=1.0))
    assert "out of range" in own.err("calibrate", "mine", "--from", slow, *CASES, "--write", status=2)
    assert file.read_text() == before


def test_results_that_counted_nothing(quicsat: CommandLine, tmp_path: Path) -> None:
    write_result_json(tmp_path, result_set(runs(*[5e6] * 10)))
    assert "system calls" in quicsat.refusal("calibrate", "--from", tmp_path)


def test_runs_without_numbers_are_named(quicsat: CommandLine, tmp_path: Path) -> None:
    """Of three partners, the runs with one failed, and those with another counted nothing."""
    stored = campaign()
    changed = [
        replace(each, verdict=replace(each.verdict, outcome=Outcome.FAILED))
        if each.client == "a"
        else replace(each, evidence=replace(each.evidence, use={}))
        if each.client == "b"
        else each
        for each in stored.results
    ]
    write_result_json(tmp_path, replace(stored, results=tuple(changed)))
    notes = quicsat.out("calibrate", "--from", tmp_path, *CASES).replace("\n", " ")
    third = len(changed) // 3
    assert len(re.findall(rf"mine, server: {third} runs", notes)) == 2
    assert len(re.findall(rf"[ab], client: {third} runs", notes)) == 2
    assert f"c, client: {third} runs" in notes


def test_options_that_do_not_go_together(quicsat: CommandLine, stored: Path) -> None:
    quicsat.refusal("calibrate")
    quicsat.refusal("calibrate", "mine", "--from", stored, "-l", "new")
    quicsat.refusal("calibrate", "strange", "--from", stored)
    with pytest.raises(InputError):
        calibrate.plan(options("nginx-tcp"), Inventory(ROOT), 1)


def test_what_the_daemon_does_not_count_gives_no_model(
    checkout: Checkout, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The campaign is measured and stays; its engine is one of threads."""
    monkeypatch.setattr(calibrate, "TESTS", ("tiny",))
    words = ("calibrate", "good", "--partner", "good", "-l", tmp_path / "r")
    assert "system calls" in checkout.err(*words, status=2)
    assert (tmp_path / "r/result.json").is_file()
