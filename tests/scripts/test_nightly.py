"""scripts/nightly: the steps of a night, who hears of it, and the same night again from its log."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from interop.config import loader

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
print("said by", words[0])
sys.exit(told.get(words[0], 0))
"""
Nightly = Callable[..., subprocess.CompletedProcess[str]]


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
    assert first == ["run", "plot", "site", "prune"]
    run = calls(checkout)[0]
    assert run[1:3] == ["-t", "sat"]
    assert "--seed" in run
    assert json.loads(night(checkout, run=1).stdout)["state"]["run"] == 1  # some run failed for the first time
    assert [words[0] for words in calls(checkout)] == ["run", "plot", "site", "compare", "prune"]
    assert night(checkout, run=1).stdout == ""  # as the night before
    assert [line["event"] for line in log(checkout)][:6] == ["begin", "step", "step", "step", "step", "end"]
    assert all({"ts", "monotonic", "night"} <= set(line) for line in log(checkout))


def test_a_change_is_told_once_to_whoever_asked(checkout: Path) -> None:
    night(checkout)
    hear = f"{sys.executable} -c \"import sys; open('heard', 'w').write(sys.stdin.read())\""
    words = ("--notify", hear, "--", "-t", "x")
    done = night(checkout, *words, compare=1)
    assert (done.returncode, done.stdout) == (0, "")
    heard = json.loads((checkout / "heard").read_text())
    assert heard["state"]["worse"]
    assert "said by compare" in heard["comparison"]
    (checkout / "heard").unlink()
    night(checkout, *words)  # it is well again, which is a change
    assert not json.loads((checkout / "heard").read_text())["state"]["worse"]
    (checkout / "heard").unlink()
    night(checkout, *words)
    assert not (checkout / "heard").exists()


def test_a_comparison_that_could_not_be_made_is_not_a_pair_that_got_worse(checkout: Path) -> None:
    night(checkout)
    told = json.loads(night(checkout, compare=2).stdout)
    assert told["state"] == {"run": 0, "failed steps": ["compare"], "worse": False}


def test_a_message_that_nobody_took_is_sent_again(checkout: Path) -> None:
    hear = f"{checkout / 'hear'}"
    Path(hear).write_text("#!/bin/sh\ncat > heard; exit 1\n", encoding="utf-8")
    Path(hear).chmod(0o755)
    words = ("--notify", hear, "--", "-t", "x")
    for _ in range(2):
        done = night(checkout, *words, run=1)
        assert "exit status 1" in done.stderr
        assert json.loads((checkout / "heard").read_text())["state"]["run"] == 1
        (checkout / "heard").unlink()


def test_a_step_that_cannot_be_made_does_not_keep_the_others(checkout: Path) -> None:
    done = night(checkout, plot=3)
    assert done.returncode == 3
    assert json.loads(done.stdout)["state"]["failed steps"] == ["plot"]
    assert [words[0] for words in calls(checkout)] == ["run", "plot", "site", "prune"]


def test_another_campaign_is_under_way(checkout: Path) -> None:
    done = night(checkout, run=75)
    assert done.returncode == 75
    assert [words[0] for words in calls(checkout)] == ["run"]
    assert night(checkout).stdout == ""


def test_a_signal_is_passed_on(checkout: Path) -> None:
    (checkout / "told.json").write_text(json.dumps({"sleep": True}))
    command = [sys.executable, "scripts/nightly", "--", "-t", "sat"]
    with subprocess.Popen(command, cwd=checkout, stdout=subprocess.PIPE, text=True) as process:
        while not (checkout / "running").exists():
            time.sleep(0.05)
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 143
    assert [line["event"] for line in log(checkout)] == ["begin", "step", "stopped"]
    assert log(checkout)[1]["status"] == 143


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
    assert again[3][1] == made[3][1]  # it is compared with the same night as then
    assert len(list((tmp_path / "again").glob("*/journal.jsonl"))) == 1
    first = log(checkout)[0]["night"]
    night(checkout, "--replay", "results/nightly.jsonl", "--into", str(tmp_path / "first"), "--night", first)
    assert calls(checkout)[0][1:3] == ["-t", "sat"]


@pytest.mark.parametrize("clock", [("--clock", "virtual"), ("--clock=virtual",)])
def test_nights_in_virtual_time_have_one_seed(checkout: Path, clock: tuple[str, ...]) -> None:
    seeds = []
    for words in ((), (), ("--seed", "7"), ("--seed=8",)):
        night(checkout, "--", "-t", "sat", *clock, *words)
        run = calls(checkout)[0]
        seeds.append([word for word in run[run.index("sat") + 1 + len(clock) :] if word != "-l"][:-1])
    assert seeds == [["--seed", "1"], ["--seed", "1"], ["--seed", "7"], ["--seed=8"]]


def test_nights_in_real_time_have_seeds_of_their_own(checkout: Path) -> None:
    seeds = []
    for _ in range(2):
        night(checkout, "--", "--clock", "real", "-t", "sat")
        run = calls(checkout)[0]
        seeds.append(run[run.index("--seed") + 1])
    assert seeds[0] != seeds[1]


def test_a_night_is_compared_with_the_last_one_of_its_clock(checkout: Path) -> None:
    virtual = ("--", "-t", "sat", "--clock", "virtual")
    night(checkout)
    night(checkout, *virtual)
    assert "compare" not in [words[0] for words in calls(checkout)]
    night(checkout)
    night(checkout, *virtual)
    places = [line["directory"] for line in log(checkout) if line["event"] == "begin"]
    compared = [line["words"][1:] for line in log(checkout) if line.get("name") == "compare"]
    assert compared == [[places[0], places[2]], [places[1], places[3]]]
    first = [line for line in log(checkout) if line["night"] == log(checkout)[0]["night"]]
    old = [{key: value for key, value in line.items() if key != "clock"} for line in first]  # before virtual time
    (checkout / "results" / "nightly.jsonl").write_text("".join(json.dumps(line) + "\n" for line in old))
    night(checkout)
    assert [line["words"][1] for line in log(checkout) if line.get("name") == "compare"] == [places[0]]


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


def test_the_message_of_a_first_night_says_why_a_step_could_not_be_made(checkout: Path) -> None:
    message = json.loads(night(checkout, run=3).stdout)
    assert message["said"] == {"run": ["said by run"]}
    assert message["before"] is None


@pytest.mark.parametrize("command", ["/no/such/command", "false"])
def test_a_message_that_nobody_took_is_printed(checkout: Path, command: str) -> None:
    done = night(checkout, "--notify", command, "--", "-t", "sat", run=3)
    assert f"nightly: {command}" in done.stderr
    assert json.loads(done.stdout)["state"]["run"] == 3
    assert done.returncode == 3


def test_places_are_those_of_the_callers_directory(checkout: Path) -> None:
    assert night(checkout, "--results", "nights", "--site", "web", "--", "-t", "sat").returncode == 0
    run, _, site, prune = calls(checkout)
    assert run[run.index("-l") + 1].startswith(str(checkout / "nights"))
    assert site[1:] == [str(checkout / "nights"), "-o", str(checkout / "web")]
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
