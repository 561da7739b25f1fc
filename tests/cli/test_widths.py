"""On a terminal, no command prints a line that is wider, and a table is complete in whichever form it fits."""

from __future__ import annotations

import shutil
from dataclasses import replace
from itertools import count
from pathlib import Path

import pytest

from quicsat.cli import console, demo, setup
from quicsat.cli.commands import SUMMARIES
from quicsat.cli.live_view import LiveView
from quicsat.cli.tables import TABLES
from quicsat.images import archives
from quicsat.model.clock import Clock
from quicsat.model.implementation import Role
from quicsat.model.outcomes import Outcome
from quicsat.results.store import write_result_json
from tests.cli.conftest import ROOT, Checkout, CommandLine, Draws
from tests.cli.test_analyse import logs
from tests.cli.test_bisect import Builder, slower_from
from tests.cli.test_bisect import builder as builder  # a fixture
from tests.cli.test_bisect import words as words_of_bisect
from tests.cli.test_calibrate import store as store_costs
from tests.cli.test_confirm import Both, slower
from tests.cli.test_confirm import both as both  # a fixture
from tests.cli.test_gate import BASE, WORDS, measure, slower_cell
from tests.fakes import CASE, run_of
from tests.parity_builder import campaign as parity_campaign
from tests.parity_builder import over, over_tcp
from tests.results.test_merge import Make
from tests.results.test_merge import make as make  # a fixture
from tests.results_builder import SAT, SATLOSS, result_set, run_result, virtual
from tests.statistics.test_releases import history

SERVERS = ("picoquic:window-256k", "ngtcp2:window-768k", "quic-go", "haproxy:newreno", "nginx-tcp:iw20")
CLIENTS = ("picoquic:window-1m", "aioquic", "chromium")
REASON = "The client closed the connection with a transport error, as it did in the first repetition. " * 2
TWO_CASES = ("clusters", "groups")

STORED = (
    *(f"tables {{before}} --table {name} {'-t sat satloss' if name in TWO_CASES else ''}" for name in TABLES),
    "tables {parity} --table parity",
    "tables {before} {after}",
    "show {before} --negotiated",
    "compare {before} {after} --all",
    "compare {before} --all -t sat satloss",
    "baseline save {before} {new}",
    "baseline check {after} {baseline}",
    "calibrate --from {costs} -t sat satloss sat+connections",
    "analyse {logs}",
    "history quic-go --from {releases} -o {new}",
    "explain {run}",
    "packets {run} 1 2",
    "plot {before}",
    "site {before} -o {new} --no-plots",
    "export {before} {new}",
    "prune {root} --traces 1",
    "merge {root}/1-2 {root}/2-2 -o {new}",
    "list",
    "list sat quic-go",
    "--help",
    *(f"help {name}" for name in SUMMARIES),
)
"""Commands without an engine."""
PAIRS = "-s good bad -c good bad -t tiny"
MEASURED = (
    f"run {PAIRS} -l {{new}}",
    f"plan {PAIRS} --all",
    f"plan {PAIRS} --repetitions 10000 --timeout 13h",
    "plan --nope",
    "tables {root} --table pear",
    "resume {unfinished}",
    "demo",
    "setup",
    "images list",
    "images sources",
    "images check",
    "images lock --lock-file {new}",
    "doctor --all",
    "clean",
)
"""Commands with an engine, which is one of threads here."""
BUILDS = ("gate", "confirm", "bisect")
"""Commands that measure several builds."""
SILENT = ("export", "setup")
"""Commands that say nothing if all goes well."""
NO_TABLE = {"open": "an address", "completion": "a script for a shell", "worker": "messages of Dask"}
"""What the other commands print."""


@pytest.fixture(params=[80, 120, 200])
def columns(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    """Of a terminal on which all is printed."""
    monkeypatch.setattr(console, "_columns", lambda _: request.param)
    return int(request.param)


@pytest.fixture
def places(tmp_path: Path, make: Make) -> dict[str, Path]:
    """Campaigns of many pairs with long names, in which some runs failed, and what else commands read."""
    found = {"root": tmp_path, "logs": logs(tmp_path), "costs": store_costs(tmp_path / "costs")}
    for name, rates in (("before", (10e6, 11e6, None)), ("after", (6e6, 6.1e6, 6.2e6))):
        found[name] = tmp_path / name
        found[name].mkdir()
        results = [
            run_result(rate, server=server, client=client, test_case=case, repetition=number,
                       reason="" if rate else REASON)
            for server in SERVERS
            for client in CLIENTS
            for case in ("sat", "satloss")
            for number, rate in enumerate(rates, start=1)
        ]  # fmt: skip
        record = result_set(results, servers=SERVERS, clients=CLIENTS, test_cases=(SAT, SATLOSS), repetitions=3)
        write_result_json(found[name], virtual(record))
    found["releases"] = tmp_path / "releases"
    found["releases"].mkdir()
    write_result_json(found["releases"], history({("1.0.0", Role.SERVER): 0.5}, name="quic-go"))
    found["parity"] = tmp_path / "parity"
    found["parity"].mkdir()
    ratios = [*over_tcp(4.0, 5.0), *(run for server in SERVERS for run in over(server, CLIENTS[0], 2.0, 3.0))]
    write_result_json(found["parity"], parity_campaign(ratios))
    found["run"] = found["before"] / "quic-go_aioquic/sat/3"
    shutil.copytree(ROOT / "tests/data/lossy", found["run"])
    for number in (1, 2):
        make(f"{number}/2")
    return found


def too_wide(text: str, columns: int) -> list[str]:
    """The lines that are wider, without commands to copy and words that have no space to be wrapped at."""
    return [
        line
        for line in text.splitlines()
        if len(line) > columns
        and (not line.lstrip().startswith("./run.py ") or " # " in line or line.split()[1].endswith(":"))
        and len(line.split()) > 1
    ]


def words_of(line: str, places: dict[str, Path], numbers: count[int]) -> list[str]:
    return line.format(**places, new=places["root"] / f"new-{next(numbers)}").split()


def test_no_command_is_forgotten() -> None:
    looked_at = {line.split()[0] for line in (*STORED, *MEASURED)}
    assert looked_at - {"--help"} | {*BUILDS, *NO_TABLE} == set(SUMMARIES)


def test_stored_results(
    quicsat: CommandLine, places: dict[str, Path], monkeypatch: pytest.MonkeyPatch, columns: int
) -> None:
    numbers = count()
    places["baseline"] = places["root"] / "baseline.json"
    quicsat("baseline", "save", places["before"], places["baseline"])
    monkeypatch.setattr(archives, "REGISTRARS", {})
    for line in STORED:
        words = words_of(line, places, numbers)
        status, out, err = quicsat(*words, draw=Draws())
        assert out or words[0] in SILENT, (words, err)
        assert status in (0, 1, 3, 5), (words, err)
        assert (too_wide(out, columns), too_wide(err, columns)) == ([], []), words


def test_pipes_get_each_row_on_one_line(
    quicsat: CommandLine, places: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A narrow terminal shows the same numbers, but for descriptions in ``list``, which ``list NAME`` completes."""
    for line in (each for each in STORED if each.split()[0] in ("tables", "compare", "list", "show")):
        words = words_of(line, places, count())
        monkeypatch.setattr(console, "_columns", lambda _: None)
        piped = quicsat(*words)[1]
        monkeypatch.setattr(console, "_columns", lambda _: 10_000)
        assert quicsat(*words)[1] == piped, words
        monkeypatch.setattr(console, "_columns", lambda _: 80)
        narrow = quicsat(*words)[1]
        texts = [word for word in piped.replace("│", " ").split() if word[:1].isdigit()]
        assert words[0] == "list" or [word for word in texts if word not in narrow] == [], words


def test_campaigns_plans_and_images(checkout: Checkout, monkeypatch: pytest.MonkeyPatch, columns: int) -> None:
    numbers = count()
    monkeypatch.setattr(setup, "prepare", lambda: None)
    monkeypatch.setattr(demo, "_clock", lambda: Clock.REAL)
    monkeypatch.setattr(demo, "CAMPAIGNS", (PAIRS,))
    places = {"root": checkout.root, "unfinished": checkout.root / "unfinished"}
    checkout(*f"run {PAIRS} --runtime 0s -l {places['unfinished']}".split())
    for line in MEASURED:
        words = words_of(line, places, numbers)
        _, out, err = checkout(*words)
        assert out or err or words[0] in SILENT, words
        assert (too_wide(out, columns), too_wide(err, columns)) == ([], []), words


def test_gate(checkout: Checkout, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, columns: int) -> None:
    measure(checkout, monkeypatch, slower_cell)
    _, out, err = checkout(*WORDS, "--against", BASE, "-l", tmp_path / "both")
    assert "│" in out
    assert (too_wide(out, columns), too_wide(err, columns)) == ([], [])


def test_confirm(both: Both, columns: int) -> None:
    both.measure(slower)
    out = both.confirm(status=1)
    assert "confirmed" in out
    assert too_wide(out, columns) == []


def test_bisect(checkout: Checkout, builder: Builder, monkeypatch: pytest.MonkeyPatch, columns: int) -> None:
    slower_from(builder, monkeypatch, 6)
    _, out, err = checkout(*words_of_bisect(builder))
    assert "It came with" in " ".join(out.split())
    assert (too_wide(out, columns), too_wide(err, columns)) == ([], [])


def test_live_view(columns: int) -> None:
    """Each line fits, so that a terminal cuts none of them."""
    case = replace(CASE, name="sat+connections", file_sizes=(4_000_000,), repetitions=3)
    planned = [run_of(server, client, case, number) for number in (1, 2, 3) for server in SERVERS for client in CLIENTS]
    view = LiveView(())
    view.observer.planned(planned)
    for run in planned[:20]:
        view.observer.began(run)
        view.observer.done(
            run_result(5e6 if run.repetition == 1 else None, server=run.server.name, client=run.client.name,
                       test_case=case.name, repetition=run.repetition, outcome=None if run.repetition == 1
                       else Outcome.FAILED, reason=REASON)
        )  # fmt: skip
    for run in planned[20:24]:
        view.observer.began(run)
        view._received(run, 1_000_000)
    lines = view.picture().plain.splitlines()
    assert any("MiB, 25 %" in line for line in lines)
    assert sum("failed:" in line for line in lines) == 3
    assert all(name in "\n".join(lines) for name in (*SERVERS, *CLIENTS))
    assert [line for line in lines if len(line) > columns] == []


def test_a_command_that_ends_a_line_stays_whole(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(console, "_columns", lambda _: 40)
    command = "./run.py resume 'results/a campaign' --json 'a file.json'"
    console.show(f"Some of the runs are left for another time. To continue: {command}")
    assert capsys.readouterr().out == f"Some of the runs are left for another\ntime. To continue:\n{command}\n"


def test_a_number_and_its_unit_stay_on_one_line(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(console, "width", lambda: 20)
    console.show("The transfer waits 17 % of the 11.4 s, 10 MiB")
    assert capsys.readouterr().out == "The transfer waits\n17 % of the 11.4 s,\n10 MiB\n"
