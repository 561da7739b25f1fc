"""The command line: exit statuses, what goes to which stream, and the whole command at an engine of threads."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from interop import cli, crews, measure, store
from interop.analysis.analyse import analyse
from interop.errors import HarnessFault
from interop.execution.daemon import Daemon
from interop.execution.lock import exclusive
from interop.limits import Limits
from interop.links.ns3 import Ns3Backend
from interop.model import ErrorCode, Evidence, Measurement, Outcome, Role, Run, Verdict
from tests.fakes import FakeEngine, Life, connect, end_with, endpoint, hang, install, judge, only_as

ROOT = Path(__file__).resolve().parent.parent
TEST_CASE = """\
name: tiny
abbreviation: TY
description: 3 kB over a terrestrial link
link: {scenario: simple-p2p, delay: 15 ms, rate: 20 Mbit/s, queue: 25}
file size: 3 kB
repetitions: 1
timeout: 5 s
"""


class Checkout:
    """A checkout of its own, with a fake engine; call it with words of the command line."""

    def __init__(self, root: Path, engine: FakeEngine, capsys: pytest.CaptureFixture[str]) -> None:
        self.root, self.engine, self._capsys = root, engine, capsys

    def __call__(self, *words: str) -> tuple[int, str, str]:
        status = cli.main(self.root, words)
        out, err = self._capsys.readouterr()
        assert "Traceback" not in err
        return status, out, err

    @property
    def results(self) -> Path:
        return self.root / "results" / "latest"


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Checkout:
    root = tmp_path / "checkout"
    (root / "testcases").mkdir(parents=True)
    (root / "testcases/tiny.yaml").write_text(TEST_CASE)
    (root / "ns3-scenarios").symlink_to(ROOT / "ns3-scenarios")
    names = ("good", "bad", "odd")
    known = {name: {"image": f"example/{name}", "url": f"https://{name}.example", "role": "both"} for name in names}
    (root / "implementations.json").write_text(json.dumps(known))
    engine = FakeEngine(good=endpoint, bad=only_as(Role.CLIENT, end_with(1)), odd=end_with(0))
    install(engine, monkeypatch, tmp_path)
    monkeypatch.setattr(sys, "argv", ["run.py"])
    monkeypatch.setattr(crews, "analyse", numbers)
    return Checkout(root, engine, capsys)


def numbers(run: Run, evidence: Evidence, directory: Path) -> tuple[Verdict, Measurement | None]:
    """Without tshark."""
    verdict, measurement = judge(run, evidence, directory)
    return verdict, Measurement({"goodput": 5e6, "efficiency": 0.25}) if measurement else None


GOOD = ("-s", "good", "-c", "good", "-t", "tiny")


# ---- the whole command ----------------------------------------------------------------------


def test_the_whole_command_from_the_plan_to_the_matrix(
    checkout: Checkout, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(crews, "analyse", analyse)
    status, out, err = checkout(*GOOD, "--seed", "7", "-j", str(tmp_path / "all.json"))
    assert status == 0
    assert checkout.engine.lives == {}
    record = store.load(checkout.results)
    [result] = record.result_set.results
    assert result.verdict == Verdict(Outcome.SUCCEEDED)
    assert result.measurement is not None
    assert result.measurement.values["goodput"] > 0
    assert record.result_set.finished is not None
    assert record.result_set.manifest.seed == 7
    assert {"client", "server", "sim", "output.txt"} <= {
        path.name for path in (checkout.results / "good_good/tiny/1").iterdir()
    }
    assert "good" in out
    assert "Mbit/s" in out
    assert str(checkout.results.resolve()) in out
    assert "[1/1] good_good/tiny/1: " in err
    assert json.loads((tmp_path / "all.json").read_text())["servers"] == ["good"]
    assert json.loads((checkout.results / "result.json").read_text())
    assert checkout("show")[1].splitlines()[0] == out.splitlines()[0]


# ---- exit statuses --------------------------------------------------------------------------


def test_success_goes_to_the_right_streams(checkout: Checkout) -> None:
    status, out, err = checkout(*GOOD)
    assert status == 0
    assert "[1/1]" in err
    assert "[1/1]" not in out
    assert "5.00" in out


@pytest.mark.parametrize(
    ("client", "status", "words"),
    [("bad", 1, "client-failed"), ("odd", 0, "not compliant")],
)
def test_failed_and_unsupported(checkout: Checkout, client: str, status: int, words: str) -> None:
    found, out, _ = checkout("-s", "good", "-c", "good", client, "-t", "tiny")
    assert found == status
    assert words in out


def test_without_compliance_check_an_image_is_trusted(checkout: Checkout) -> None:
    status, _, _ = checkout("-s", "good", "-c", "odd", "-t", "tiny", "--skip-compliance-check")
    assert status == 1
    assert store.load(checkout.results).result_set.compliance == ()


def test_a_fault_of_ours(checkout: Checkout) -> None:
    def die(life: Life) -> int:
        return 134 if not life.command else 0 if life.command[0] != "holder" else int(not life.terminated.wait())

    checkout.engine.programs["simulator"] = die
    status, out, err = checkout(*GOOD, "--skip-compliance-check")
    assert status == 3
    assert "simulator-failed" in out
    assert "is repeated" in err


@pytest.mark.parametrize(
    ("words", "messages"),
    [
        (("-s", "goood", "-c", "good"), ['No server "goood". Did you mean good?']),
        (("-s", "goood", "-c", "bda", "-t", "tinny"), ["goood", "bda", "tinny"]),
        (("-s", "good", "-c", "good", "-t", "./none.yaml"), ["none.yaml"]),
        ((*GOOD, "--repetitions", "0"), ["0 repetitions are impossible"]),
        ((*GOOD, "--timeout", "-1"), ["timeout"]),
        ((*GOOD, "-r", "nobody=x/y"), ["nobody"]),
        ((*GOOD, "-j", "no/such/place/all.json"), ["no/such/place/all.json"]),
    ],
)
def test_faults_of_the_command_line(checkout: Checkout, words: tuple[str, ...], messages: list[str]) -> None:
    status, out, err = checkout(*words)
    assert status == 2
    assert out == ""
    assert all(message in err for message in messages)
    assert checkout.engine.all_lives == []
    assert not (checkout.root / "results").exists()


def test_a_campaign_directory_that_is_in_use(checkout: Checkout, tmp_path: Path) -> None:
    assert checkout(*GOOD, "-l", str(tmp_path / "mine"))[0] == 0
    assert (tmp_path / "mine/journal.jsonl").exists()
    status, _, err = checkout(*GOOD, "-l", str(tmp_path / "mine"))
    assert status == 2
    assert "is not empty" in err


def test_no_engine(checkout: Checkout) -> None:
    checkout.engine.gone = True
    for words in (GOOD, ("clean",)):
        status, _, err = checkout(*words)
        assert status == 3
        assert "No Docker daemon answers" in err


def test_another_campaign(checkout: Checkout) -> None:
    with exclusive("fake", "campaign 4711"):
        for words in (GOOD, ("clean",)):
            status, _, err = checkout(*words)
            assert status == 75
            assert f"process {os.getpid()}" in err
            assert "campaign 4711" in err
    assert checkout.engine.all_lives == []


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_signals(checkout: Checkout, number: signal.Signals) -> None:
    def interrupt(life: Life) -> int:
        os.kill(os.getpid(), number)
        return hang(life)

    checkout.engine.programs["bad"] = only_as(Role.CLIENT, interrupt)
    before = signal.getsignal(number)
    status, out, err = checkout("-s", "good", "-c", "good", "bad", "-t", "tiny")
    assert status == 128 + number
    assert f"stopped by signal {number.value}; 1 of 2 runs are finished and kept" in err
    assert "5.00" in out
    assert checkout.engine.lives == {}
    assert not (checkout.results / "good_bad/tiny/1").exists()
    record = store.load(checkout.results).result_set
    assert len(record.results) == 1
    assert record.finished is None
    assert signal.getsignal(number) is before


def test_resume_goes_on_where_it_was_stopped(checkout: Checkout, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(life: Life) -> int:
        checkout.engine.programs["bad"] = endpoint
        os.kill(os.getpid(), signal.SIGTERM)
        return hang(life)

    checkout.engine.programs["bad"] = only_as(Role.CLIENT, interrupt)
    _, _, err = checkout("-s", "good", "-c", "good", "bad", "-t", "tiny", "--breaker", "3")
    [told] = [line for line in err.splitlines() if "continue with" in line]
    assert f"./run.py resume {checkout.results.resolve()}" in told
    continued: list[measure.Settings] = []
    as_it_is = measure.resume

    def resume(*words: Any) -> measure.Finished:
        continued.append(words[2])
        return as_it_is(*words)

    monkeypatch.setattr(measure, "resume", resume)
    status, out, err = checkout("resume", str(checkout.results))
    assert status == 0
    assert [(each.testbeds, each.limits) for each in continued] == [(1, Limits(breaker=3))]
    assert out.count("5.00") >= 2
    assert "[1/1] good_bad/tiny/1: 5.00 Mbit/s" in err


def test_interruption_before_anything_runs(checkout: Checkout, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: object) -> None:
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(5)  # a signal may take another thread's way

    monkeypatch.setattr(measure, "_images", interrupt)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs ignore it
    try:
        status, _, err = checkout(*GOOD)
    finally:
        signal.signal(signal.SIGINT, before)
    assert status == 130
    assert "stopped" in err


def test_a_fault_that_nobody_expected_is_one_line(checkout: Checkout, monkeypatch: pytest.MonkeyPatch) -> None:
    def fault(*_: object, **_options: object) -> None:
        raise HarnessFault("daemon-fault", "cannot list containers: Connection refused")

    monkeypatch.setattr(Daemon, "sweep", fault)
    assert checkout("clean") == (3, "", "cannot list containers: Connection refused (daemon-fault)\n")


def test_a_campaign_that_cannot_go_on_shows_what_it_has(checkout: Checkout, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("interop.execution.crew.DAEMON_PATIENCE", 0)
    monkeypatch.setattr("interop.execution.daemon.QUICK", 0.01)

    def pull_the_plug(life: Life) -> int:
        life.engine.gone = True
        return endpoint(life)

    checkout.engine.programs["bad"] = only_as(Role.CLIENT, pull_the_plug)
    status, out, err = checkout("-s", "good", "-c", "good", "bad", "-t", "tiny")
    assert status == 3
    assert "5.00" in out
    assert "has not answered" in err
    assert (checkout.results / "result.json").exists()


# ---- options --------------------------------------------------------------------------------


def test_repetitions_timeout_and_seed(checkout: Checkout) -> None:
    assert checkout(*GOOD, "--repetitions", "2", "--timeout", "3.5", "--seed", "5")[0] == 0
    record = store.load(checkout.results).result_set
    assert [result.repetition for result in record.results] == [1, 2]
    assert record.manifest.seed == 5
    assert record.manifest.test_cases[0].timeout == 3.5
    seeds = [result.evidence.seed for result in record.results]
    assert checkout(*GOOD, "--repetitions", "2", "--seed", "5")[0] == 0
    assert [result.evidence.seed for result in store.load(checkout.results).result_set.results] == seeds
    assert seeds[0] != seeds[1]


def test_a_seed_is_drawn_and_recorded(checkout: Checkout) -> None:
    drawn = set()
    for _ in range(2):
        checkout(*GOOD)
        drawn.add(store.load(checkout.results).result_set.manifest.seed)
    assert len(drawn) == 2


def test_markdown(checkout: Checkout) -> None:
    assert any(line.startswith("|") for line in checkout(*GOOD, "-m")[1].splitlines())
    assert any(line.startswith("|") for line in checkout("show", "-m")[1].splitlines())


def test_no_qlog_and_parameters(checkout: Checkout, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLIENT_PARAMS", "--fast")
    monkeypatch.setenv("PROTOCOLS_CLIENT", "one two")
    checkout(*GOOD, "--no-qlog", "--skip-compliance-check")
    lives = {
        life.environment["ROLE"]: life.environment for life in checkout.engine.all_lives if "ROLE" in life.environment
    }
    assert lives["client"]["QLOGDIR"] == lives["server"]["QLOGDIR"] == ""
    assert lives["client"]["CLIENT_PARAMS"] == "--fast"
    assert (lives["client"]["PROTOCOLS"], lives["server"]["PROTOCOLS"]) == ("one two", "")


def test_save_files(checkout: Checkout) -> None:
    checkout("-s", "good", "-c", "good", "bad", "-t", "tiny", "-f")
    assert (checkout.results / "good_bad/tiny/1/www").is_dir()
    assert not (checkout.results / "good_good/tiny/1/www").exists()


def test_a_success_without_goodput_is_told(checkout: Checkout, monkeypatch: pytest.MonkeyPatch) -> None:
    def nothing(*_: object) -> tuple[Verdict, Measurement]:
        return Verdict(Outcome.SUCCEEDED), Measurement({})

    monkeypatch.setattr(crews, "analyse", nothing)
    status, _, err = checkout(*GOOD)
    assert status == 0
    assert "[1/1] good_good/tiny/1: succeeded" in err


def test_hostile_reasons_do_nothing_to_a_terminal(checkout: Checkout, monkeypatch: pytest.MonkeyPatch) -> None:
    def hostile(*_: object) -> tuple[Verdict, None]:
        return Verdict(Outcome.FAILED, ErrorCode.CLIENT_FAILED, "a\x1b[2Jb\x1b]0;title\x07c\nd\x9b1m\u202e"), None

    monkeypatch.setattr(crews, "analyse", hostile)
    _, out, err = checkout(*GOOD)
    for text in (out, err):
        assert not {"\x1b", "\x07", "\x9b", "\u202e"} & set(text)
    assert "abc d" in err


def test_hostile_reasons_of_compliance(checkout: Checkout) -> None:
    checkout.engine.unstartable = {"odd"}
    start = checkout.engine.start

    def hostile(identity: str) -> None:
        try:
            start(identity)
        finally:
            checkout.engine.lives[identity].error = "\x1b[2Jboo"

    checkout.engine.start = hostile  # type: ignore[method-assign]
    _, out, err = checkout("-s", "good", "-c", "odd", "-t", "tiny")
    assert "\x1b" not in out + err
    assert "boo" in err


# ---- other commands -------------------------------------------------------------------------


def test_plan_touches_nothing(checkout: Checkout) -> None:
    checkout.engine.gone = True
    status, out, err = checkout("plan", *GOOD, "--repetitions", "3")
    assert (status, err) == (0, "")
    assert out.count("good") >= 2
    assert not (checkout.root / "results").exists()


def test_list(checkout: Checkout) -> None:
    everything = checkout("list")[1]
    tests, implementations = checkout("list", "tests")[1], checkout("list", "implementations")[1]
    assert everything == tests + implementations
    assert "tiny" in tests
    assert "odd" in implementations


def test_show_has_the_campaigns_exit_status(checkout: Checkout, tmp_path: Path) -> None:
    checkout("-s", "good", "-c", "bad", "-t", "tiny")
    assert checkout("show")[0] == 1
    assert checkout("show", str(tmp_path))[0] == 2


@pytest.mark.parametrize("form", ["qir", "qir-se"])
def test_export(checkout: Checkout, tmp_path: Path, form: str) -> None:
    checkout(*GOOD)
    assert checkout("export", str(checkout.results), str(tmp_path / "x.json"), "--format", form) == (0, "", "")
    assert json.loads((tmp_path / "x.json").read_text())["clients"] == ["good"]


def test_clean_removes_what_is_ours(checkout: Checkout) -> None:
    daemon = connect(checkout.engine, "other")
    with Ns3Backend(daemon, "simulator").open():
        assert checkout("clean") == (0, "removed 3 containers\n", "")
    assert checkout("clean") == (0, "nothing was left\n", "")


def test_doctor(checkout: Checkout) -> None:
    status, out, _ = checkout("doctor")
    assert status == 0
    assert "engine" in out
    checkout.engine.gone = True
    status, out, _ = checkout("doctor")
    assert status == 3
    assert "->" in out


@pytest.mark.parametrize("words", [("--help",), ("run", "--help"), ("list",), ("--version",)])
def test_what_needs_no_engine_imports_no_docker(words: tuple[str, ...]) -> None:
    script = """
import sys
from pathlib import Path
from interop import cli
try:
    cli.main(Path("."), sys.argv[1:])
except SystemExit as end:
    assert not end.code
print(sorted({"docker", "numpy", "pyshark", "matplotlib"} & set(sys.modules)))
"""
    done = subprocess.run([sys.executable, "-c", script, *words], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


def test_a_closed_pipe_is_no_fault() -> None:
    command = f"{sys.executable} run.py list; echo status $? >&2"
    done = subprocess.run(["bash", "-c", f"({command}) | true"], cwd=ROOT, capture_output=True, text=True, check=True)
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (["pln"], "Did you mean plan?"),
        (["run", "--repetitons", "1"], "Did you mean --repetitions?"),
        (["show", "--markdwn"], "Did you mean --markdown?"),
        (["run", "-o", "x"], "unrecognized arguments: -o x. See"),
    ],
)
def test_a_mistyped_option_or_command_gets_the_nearest_one(
    words: list[str], hint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        cli.main(ROOT, words)
    assert (ended.value.code, hint in capsys.readouterr().err) == (2, True)


@pytest.mark.parametrize("word", ["0", "many", "33", "-1"])
def test_an_impossible_number_of_testbeds(word: str, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    with pytest.raises(SystemExit) as end:
        cli.main(tmp_path, ["-s", "good", f"--parallel={word}"])
    assert end.value.code == 2
    assert f"{word} is neither auto nor a number from 1 to 32" in capsys.readouterr().err


# ---- schedule -------------------------------------------------------------------------------


def test_a_plan_shows_all_and_touches_nothing(checkout: Checkout) -> None:
    words = ("--shuffle", "--seed", "5", "--deadline", "06:00", "--pause", "01:00-02:00", "--breaker", "3")
    status, out, _ = checkout("plan", *GOOD, "--repetitions", "2", *words)
    assert status == 0
    assert "2 runs; their transfers take 10.0 s at most." in out
    assert "image of" in out
    assert "No run begins during 01:00-02:00" in out
    assert "It takes " in out
    assert "How much disk it needs" in out
    assert checkout.engine.all_lives == []
    assert checkout.engine.log == []
    assert not (checkout.root / "results").exists()


def test_a_plan_without_an_engine(checkout: Checkout) -> None:
    checkout.engine.gone = True
    status, out, _ = checkout("plan", *GOOD)
    assert status == 0
    assert "Which images are here is not known: No Docker daemon answers" in out


def test_time_is_up_before_all_runs_are_made(checkout: Checkout) -> None:
    def dawdle(life: Life) -> int:
        time.sleep(1.1)
        return endpoint(life)

    checkout.engine.programs["bad"] = only_as(Role.CLIENT, dawdle)
    words = ("-s", "good", "-c", "bad", "-t", "tiny", "--repetitions", "2", "--shuffle", "--seed", "5")
    status, _, err = checkout(*words, "--skip-compliance-check", "--max-runtime", "1 s")
    assert status == 4
    assert "No other run is likely to end within 1.0 s.\n1 of 2 runs are finished and kept" in err
    status, out, _ = checkout("plan", "--resume", str(checkout.results.resolve()))
    assert status == 0
    assert "1 of 2 runs of" in out
    assert checkout("resume", str(checkout.results.resolve()))[0] == 0
    assert store.load(checkout.results).result_set.finished is not None


def test_parts_of_a_plan_have_one_seed(checkout: Checkout) -> None:
    status, _, err = checkout(*GOOD, "--shard", "1/2")
    assert status == 2
    assert "--shard needs --seed N" in err
    status, _, err = checkout(*GOOD, "--shard", "2/2", "--seed", "1")
    assert status == 2
    assert "too small for a part 2/2" in err
