"""scripts/nightly: the steps of a night, who hears of it, and the same night again from its log."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from quicsat.config import loader
from tests.waiting import until

ROOT = Path(__file__).resolve().parents[2]
RUN = """
import json, pathlib, sys, time
here = pathlib.Path(__file__).parent
words = sys.argv[1:]
with (here / "calls.jsonl").open("a") as file:
    file.write(json.dumps(words) + "\\n")
told = json.loads((here / "told.json").read_text())
if told.get("sleep") and words[0] == "run":
    import signal
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    (here / "running").touch()
    time.sleep(60)
if words[0] == "run" and told.get("run", 0) not in (2, 75):
    place = pathlib.Path(words[words.index("-l") + 1])
    place.mkdir(parents=True)
    (place / "journal.jsonl").touch()
if words[0] == "compare" and (told.get("compare") != 2 or "changes" in told):
    changes = {"before": {"directory": "before", "started": "yesterday"}, "undecided": False, "changes": []}
    pathlib.Path(words[words.index("--json") + 1]).write_text(json.dumps({**changes, **told.get("changes", {})}))
print("said by", words[0])
sys.exit(told.get(words[0], 0))
"""


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A checkout with a run.py that does what told.json says."""
    (tmp_path / "scripts").mkdir()
    shutil.copy(ROOT / "scripts" / "nightly", tmp_path / "scripts")
    (tmp_path / "run.py").write_text(RUN)
    (tmp_path / "told.json").write_text("{}")
    return tmp_path


def night(checkout: Path, *words: str, **told: Any) -> subprocess.CompletedProcess[str]:
    """One night; ``told``: exit statuses by command."""
    (checkout / "told.json").write_text(json.dumps(told))
    (checkout / "calls.jsonl").unlink(missing_ok=True)
    over = checkout / "over"
    while over.exists() and int(time.time()) <= int(over.stat().st_mtime):
        time.sleep(0.02)  # nights are named by their second
    command = [sys.executable, "scripts/nightly", *(words or ("--", "-t", "sat", "--shuffle"))]
    done = subprocess.run(command, cwd=checkout, capture_output=True, text=True, check=False)
    over.touch()
    return done


def calls(checkout: Path) -> list[list[str]]:
    return [json.loads(line) for line in (checkout / "calls.jsonl").read_text().splitlines()]


def log(checkout: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (checkout / "results" / "nightly.jsonl").read_text().splitlines()]


def test_a_quiet_night(checkout: Path) -> None:
    done = night(checkout)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    first = [words[0] for words in calls(checkout)]
    assert first == ["run", "plot", "site", "compare", "prune"]
    run = calls(checkout)[0]
    assert run[1:3] == ["-t", "sat"]
    assert "--seed" in run
    assert "\nRuns: some runs failed or timed out (exit status 1).\n" in night(checkout, run=1).stdout
    assert [words[0] for words in calls(checkout)] == ["run", "plot", "site", "compare", "prune"]
    assert night(checkout, run=1).stdout == ""  # as the night before
    begun = ["begin", "step", "step", "step", "step", "compared", "step", "end"]
    assert [line["event"] for line in log(checkout)][:8] == begun
    assert all({"ts", "monotonic", "night"} <= set(line) for line in log(checkout))


PAIR = {"server": "a", "client": "b", "test_case": "sat"}
SLOWER = {
    **PAIR, "change": "slower", "worse": True, "better": False, "ratio": -0.05, "p": None,
    "words": "sat, server a, client b: slower, 8.00 Mbit/s → 7.60 Mbit/s (-5.0 %)",
}  # fmt: skip
FASTER = {**SLOWER, "change": "faster", "worse": False, "better": True, "words": "sat, server a, client b: faster"}
BROKEN = {**SLOWER, "change": "new failure", "words": "sat, server a, client b: new failure, 1/1 → 0/1 runs succeeded"}
FAILING = {**SLOWER, "change": "fails in both", "worse": False}


@pytest.mark.parametrize(("change", "status"), [(SLOWER, 1), (FASTER, 0)])
def test_losses_and_gains_are_told_in_plain_text(checkout: Path, change: dict[str, Any], status: int) -> None:
    night(checkout)
    hear = f"{sys.executable} -c \"import sys; open('heard', 'w').write(sys.stdin.read())\""
    words = ("--notify", hear, "--", "-t", "x")
    images = ["quic-go: version 1, image 0123 → 4567"]
    done = night(checkout, *words, compare=status, changes={"changes": [change], "images": images})
    assert (done.returncode, done.stdout) == (0, "")
    heard = (checkout / "heard").read_text().splitlines()
    assert heard[0].startswith("quicsat, nightly campaign of 20")
    assert heard[2:] == [
        f"Compared with the campaign of yesterday: {status} got worse, {1 - status} got better.",
        f"  {change['words']}",
        "Images that changed:",
        f"  {images[0]}",
        "",
        f"Log: {checkout / 'results' / 'nightly.jsonl'}",
    ]
    (checkout / "heard").unlink()
    night(checkout, *words)
    assert not (checkout / "heard").exists()


def test_a_web_hook_gets_json(checkout: Path) -> None:
    first = json.loads(night(checkout, "--json", "--", "-t", "x", run=3).stdout)
    assert first["said"] == {"run": ["exit status 3", "said by run"]}
    assert first["before"] is None
    done = night(checkout, "--json", "--", "-t", "x", compare=1, changes={"changes": [SLOWER]})
    message = json.loads(done.stdout)
    assert message["comparison"]["changes"] == [SLOWER]
    assert "Compared with" in message["text"]


def test_what_still_fails_is_named_every_night_in_short(checkout: Path) -> None:
    assert night(checkout, changes={"changes": [FAILING]}).stdout == ""  # it has always failed
    first = night(checkout, plot=3, compare=1, changes={"changes": [BROKEN]}).stdout
    assert "The step plot failed (exit status 3):\n    said by plot\n" in first
    name = [line["night"] for line in log(checkout) if line["event"] == "begin"][-1]
    told = night(checkout, plot=3, changes={"changes": [FAILING]}).stdout.splitlines()
    assert told[2:-2] == [
        f"The step plot still fails since {name} (exit status 3).",
        f"Still failing since {name}: sat, server a, client b.",
    ]
    told = night(checkout).stdout.splitlines()
    assert told[2:-2] == ["The step plot works again.", "No longer failing: sat, server a, client b."]
    assert night(checkout).stdout == ""


def test_a_night_that_was_killed_is_named_by_the_next_one(checkout: Path) -> None:
    night(checkout)
    file = checkout / "results" / "nightly.jsonl"
    with file.open("a") as lines:
        lines.write(json.dumps({"ts": "x", "night": "dead", "event": "begin", "directory": "dead", "site": "x"}) + "\n")
    told = night(checkout).stdout.splitlines()
    assert told[2] == "The nightly campaign of dead did not end; it was killed."
    assert night(checkout).stdout == ""


def test_a_comparison_that_could_not_be_made_is_not_a_pair_that_got_worse(checkout: Path) -> None:
    night(checkout)
    told = night(checkout, compare=2).stdout
    assert "The step compare failed (exit status 2)" in told
    assert "got worse" not in told
    reason = "The test case sat has other conditions than in the first campaign: time limit 9.0 s → 5.0 s."
    for _ in range(2):
        done = night(checkout, compare=2, changes={"undecided": True, "open": [reason]})
        assert done.returncode == 0
    assert done.stdout == ""


def test_each_reason_for_which_a_comparison_cannot_show_all_is_told_once(checkout: Path) -> None:
    blind, gone = "In {} cells, a loss could not have been shown.", "The second campaign lacks {} cells."
    for reasons, told in (
        ([blind.format(3)], ["In 3"]),
        ([blind.format(4)], []),
        ([blind.format(5), gone.format(1)], ["The second"]),
        ([], []),
        ([gone.format(2)], ["The second"]),
    ):
        done = night(checkout, compare=5, changes={"open": reasons})
        assert done.returncode == 0
        lines = done.stdout.splitlines()[3:-2]
        assert [line.strip()[: len(begin)] for line, begin in zip(lines, told, strict=True)] == told


@pytest.mark.parametrize("status", [1, 3, 5])
def test_what_may_have_got_worse_is_told_every_time(checkout: Path, status: int) -> None:
    """A pair that is unsupported, although the night before was undecided, too; runs with errors are no fault of it."""
    words = "sat, server a, client b: no valid result any more"
    lost = {**SLOWER, "change": "no valid result any more", "worse": False, "words": words}
    for _ in range(2):
        done = night(checkout, compare=status, changes={"changes": [lost], "undecided": True})
        assert (done.returncode, words in done.stdout) == (0, True)
        assert "0 got worse, 0 got better, 1 may have changed" in done.stdout


def test_a_message_that_nobody_took_is_sent_again(checkout: Path) -> None:
    hear = f"{checkout / 'hear'}"
    Path(hear).write_text("#!/bin/sh\ncat > heard; exit 1\n", encoding="utf-8")
    Path(hear).chmod(0o755)
    words = ("--notify", hear, "--", "-t", "x")
    for _ in range(2):
        done = night(checkout, *words, run=1)
        assert "exit status 1" in done.stderr
        assert "some runs failed" in (checkout / "heard").read_text()
        (checkout / "heard").unlink()


def test_a_step_that_cannot_be_made_keeps_the_others_only_if_another_campaign_is_under_way(checkout: Path) -> None:
    assert night(checkout, run=75).returncode == 75
    assert [words[0] for words in calls(checkout)] == ["run"]
    assert night(checkout).stdout == ""
    done = night(checkout, plot=3)
    assert done.returncode == 3
    assert "The step plot failed" in done.stdout
    assert [words[0] for words in calls(checkout)] == ["run", "plot", "site", "compare", "prune"]


def test_a_signal_is_passed_on(checkout: Path) -> None:
    (checkout / "told.json").write_text(json.dumps({"sleep": True}))
    command = [sys.executable, "scripts/nightly", "--", "-t", "sat"]
    with subprocess.Popen(command, cwd=checkout, stdout=subprocess.PIPE, text=True) as process:
        assert until((checkout / "running").exists)
        process.send_signal(signal.SIGTERM)
        assert process.wait() == 143
        assert "was stopped by SIGTERM" in process.stdout.read()
    assert [line["event"] for line in log(checkout)] == ["begin", "step", "stopped"]
    assert log(checkout)[1]["status"] == 143
    assert "did not end" not in night(checkout).stdout  # the message has been sent


SIGNALLED = """
import os, signal, subprocess
begin = subprocess.Popen.__init__
def begin_and_signal(*words, **options):
    begin(*words, **options)
    os.kill(os.getpid(), signal.SIGTERM)
subprocess.Popen.__init__ = begin_and_signal
"""
"""A script that gets a signal when it has started a process, before it knows that."""


def test_a_signal_that_comes_while_a_step_starts_is_passed_on(checkout: Path) -> None:
    (checkout / "told.json").write_text(json.dumps({"sleep": True}))
    (checkout / "sitecustomize.py").write_text(SIGNALLED)
    environment = {**os.environ, "PYTHONPATH": str(checkout)}
    done = subprocess.run([sys.executable, "scripts/nightly", "--", "-t", "sat"], cwd=checkout, env=environment)
    assert done.returncode == 143
    assert log(checkout)[1]["status"] in (143, -signal.SIGTERM)


def test_a_night_is_made_again_from_its_log(checkout: Path, tmp_path: Path) -> None:
    night(checkout)
    night(checkout, "--", "-t", "satloss", "--seed", "5")
    made = calls(checkout)
    done = night(checkout, "--replay", "results/nightly.jsonl", "--into", str(tmp_path / "again"))
    assert done.returncode == 0
    again = calls(checkout)
    assert [words[0] for words in again] == ["run", "plot", "site", "compare"]
    assert again[0][:5] == made[0][:5] == ["run", "-t", "satloss", "--seed", "5"]
    assert all(str(checkout / "results") not in " ".join(words) for words in again[:3])
    assert again[3][1:3] == ["before", str(tmp_path / "again" / log(checkout)[-1]["night"])]  # as then
    assert len(list((tmp_path / "again").glob("*/journal.jsonl"))) == 1
    first = log(checkout)[0]["night"]
    night(checkout, "--replay", "results/nightly.jsonl", "--into", str(tmp_path / "first"), "--night", first)
    assert calls(checkout)[0][1:3] == ["-t", "sat"]


@pytest.mark.parametrize(
    ("words", "same"),
    [
        (("--clock", "virtual"), "1"),
        (("--clock=virtual",), "1"),
        (("--clock", "virtual", "--seed", "7"), "7"),
        (("--clock", "virtual", "--seed=8"), ""),
        (("--clock", "real"), None),
    ],
)
def test_nights_in_virtual_time_have_one_seed(checkout: Path, words: tuple[str, ...], same: str | None) -> None:
    """In real time, each has a seed of its own."""
    seeds = []
    for _ in range(2):
        night(checkout, "--", "-t", "sat", *words)
        run = calls(checkout)[0]
        assert run[3 : 3 + len(words)] == [*words]
        seeds += [run[place + 1] for place, word in enumerate(run) if word == "--seed"] or [""]
    assert seeds == [same] * 2 if same is not None else seeds[0] != seeds[1]


def test_units_name_the_script_and_options_that_there_are() -> None:
    commands = (["run.py", "run", "--help"], ["run.py", "prune", "--help"], ["scripts/nightly", "--help"])
    known = "".join(subprocess.check_output([sys.executable, *words], cwd=ROOT, text=True) for words in commands)
    for name in ("nightly.service", "nightly.cron", "hourly.cron"):
        lines = (ROOT / "scripts" / f"quicsat-{name}").read_text().splitlines()
        words = [word.strip("\"'") for line in lines if not line.startswith("#") for word in line.split()]
        assert any(word.endswith("scripts/nightly") for word in words)
        options = [word for word in words if word.startswith("--") and len(word) > 2]
        assert len(options) > 4
        assert [word for word in options if word not in known] == []
    cases = loader.load_cases_on_request(ROOT / "testcases", loader.load_known_test_cases(ROOT / "testcases"))
    assert {"direct", "tunnel"} & set(words) <= set(cases)
    assert "OnCalendar" in (ROOT / "scripts" / "quicsat-nightly.timer").read_text()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--results", "nights"), "no options for ./run.py run"),
        (("-s", "quic-go", "-t", "SAT"), "follow --, for example: scripts/nightly -- -s quic-go -t SAT"),
        (("--into", "again", "--", "-t", "sat"), "are for --replay"),
        (("--night", "last", "--", "-t", "sat"), "are for --replay"),
        (("--prune", "--min-free '50 GiB", "--", "-t", "sat"), "No closing quotation"),
    ],
)
def test_what_could_not_be_meant_begins_nothing(checkout: Path, words: tuple[str, ...], said: str) -> None:
    done = night(checkout, *words)
    assert done.returncode == 2
    assert said in done.stderr
    assert not (checkout / "calls.jsonl").exists()


@pytest.mark.parametrize("command", ["/no/such/command", "false"])
def test_a_message_that_nobody_took_is_printed(checkout: Path, command: str) -> None:
    done = night(checkout, "--notify", command, "--", "-t", "sat", run=3)
    assert f"nightly: {command}" in done.stderr
    assert "The step run failed (exit status 3)" in done.stdout
    assert done.returncode == 3


def test_places_are_those_of_the_callers_directory(checkout: Path) -> None:
    assert night(checkout, "--results", "nights", "--site", "web", "--", "-t", "sat").returncode == 0
    run, _, site, _, prune = calls(checkout)
    assert run[run.index("-l") + 1].startswith(str(checkout / "nights"))
    assert site[1:] == [str(checkout / "nights"), "-o", str(checkout / "web"), "--no-plots"]
    assert prune[1] == str(checkout / "nights")


def test_a_torn_line_costs_no_other_night(checkout: Path) -> None:
    night(checkout)
    file = checkout / "results" / "nightly.jsonl"
    file.write_text(file.read_text() + '[1, 2]\n{"night": "x"}\n{"ts": "2026-')
    night(checkout)
    begun = [line for line in file.read_text().splitlines() if '"event": "begin"' in line]
    assert [json.loads(line)["event"] for line in begun] == ["begin", "begin"]
    assert [words[0] for words in calls(checkout)] == ["run", "plot", "site", "compare", "prune"]


def test_a_replay_writes_its_files_elsewhere(checkout: Path, tmp_path: Path) -> None:
    night(checkout, "--", "-t", "sat", "-j", "old/qir.json")
    into = tmp_path / "again"
    done = night(checkout, "--replay", "results/nightly.jsonl", "--into", "again")
    assert done.returncode == 0
    run = calls(checkout)[0]
    assert run[run.index("-j") + 1] == str(into / "qir.json")
