"""``./run.py run`` with an engine of threads: results, exit statuses, signals, options."""

import json
import os
import signal
import time
from dataclasses import replace
from pathlib import Path

import pytest

from quicsat.analysis.analyse import analyse
from quicsat.cli import main as cli
from quicsat.execution import campaign_setup, run_campaign, run_queue
from quicsat.execution.lock import early
from quicsat.model.clock import Clock
from quicsat.model.errors import MachineError
from quicsat.model.implementation import Role
from quicsat.model.outcomes import ErrorCode, Outcome, Verdict
from quicsat.model.perturbation import NOMINAL, USUAL, perturbation_of
from quicsat.model.results import Measurement
from quicsat.model.text import command_line
from quicsat.results import store
from tests.cli.conftest import GOOD, LINK, Checkout, CommandLine
from tests.fakes import Life, endpoint, hang, only_as
from tests.site.builder import build
from tests.waiting import Later


def test_the_whole_command_from_the_plan_to_the_matrix(
    checkout: Checkout, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(campaign_setup, "analyse_once", analyse)
    status, out, err = checkout(*GOOD, "--seed", "7", "-j", tmp_path / "all.json")
    assert status == 0
    assert checkout.engine.lives == {}
    record = store.load(checkout.results)
    [result] = record.result_set.results
    assert result.verdict == Verdict(Outcome.SUCCEEDED)
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


def test_a_note_is_stored_and_shown(checkout: Checkout, tmp_path: Path) -> None:
    assert checkout(*GOOD, "--note", "rain,\n 8 °C \x1b[1m<b>")[0] == 0
    assert checkout.stored.manifest.note.startswith("rain, 8 °C ")
    build(checkout.results, tmp_path / "site")
    for page in ("index.html", "runs/index.html"):
        text = (tmp_path / "site" / page).read_text()
        assert "rain, 8 °C" in text
        assert "\x1b" not in text
        assert "<b>" not in text


@pytest.mark.parametrize(
    ("client", "status", "words"), [("good", 0, "5.00"), ("bad", 1, "client-failed"), ("odd", 0, "not compliant")]
)
def test_what_goes_to_which_stream(checkout: Checkout, client: str, status: int, words: str) -> None:
    found, out, err = checkout("-s", "good", "-c", "good", client, "-t", "tiny")
    assert found == status
    assert words in out
    assert ("[1/" in err, "[1/" in out) == (True, False)


def test_without_compliance_check_an_image_is_trusted(checkout: Checkout) -> None:
    assert checkout("-s", "good", "-c", "odd", "-t", "tiny", "--skip-compliance-check")[0] == 1
    assert checkout.stored.compliance == ()


IMAGES = {"good", "bad", "odd", "simulator", "virtual-time"}


def test_locked_images(checkout: Checkout, tmp_path: Path) -> None:
    file = tmp_path / "paper.lock"
    assert checkout(*GOOD, "--locked", file)[0] == 2
    status, out, _ = checkout("images", "lock", "--lock-file", file)
    assert (status, set(json.loads(file.read_text()))) == (0, IMAGES)
    assert "5 images" in out
    assert checkout(*GOOD, "--locked", file)[0] == 0
    file.write_text(file.read_text().replace('"id": "good"', '"id": "sha256:1"'))
    err = checkout.err("-s", "good", "-c", "good", "bad", "-t", "tiny", "--locked", file, status=3)
    assert "sha256:1" in err
    assert "images lock good" in err
    assert checkout("images", "lock", "good", "--lock-file", file)[0] == 0
    assert json.loads(file.read_text()).keys() == IMAGES
    assert checkout(*GOOD, "--locked", file)[0] == 0
    err = checkout.refusal("images", "lock", "good", "link-gateways", "--lock-file", file)
    assert "images build link-gateways" in err
    for content in ("my notes", "[1]"):
        file.write_text(content)
        assert "is no earlier lock file" in checkout.refusal("images", "lock", "--lock-file", file)
        assert file.read_text() == content
    file.write_text("")
    assert checkout("images", "lock", "--lock-file", file)[0] == 0


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
        (("-t", "./none.yaml"), ["none.yaml"]),
        (("--repetitions", "0"), ["0 repetitions are impossible"]),
        (("-r", "nobody=x/y"), ["nobody"]),
        (("-j", "no/such/place/all.json"), ["no/such/place/all.json"]),
        (("--note", "x" * 501), ["has 501 characters; at most 500 are stored"]),
        (("--parallel=0",), ["0 is neither auto nor a number from 1 to 32"]),
        (("--parallel=33",), ["33 is neither auto nor a number from 1 to 32"]),
        (("--parallel=-1",), ["-1 is neither"]),
        (("--parallel=many",), ["many is neither"]),
        (("--shard", "1/2"), ["--shard needs --seed N"]),
        (("--shard", "2/2", "--seed", "1"), ["too few runs for shard 2/2"]),
        (("--require", "sat"), ['--require "sat" is none of the selected test cases.']),
        (("--require", "tiny", "--shard", "1/2"), ["--require and --shard exclude each other"]),
        (("--clock", "wall"), ["--clock"]),
        (("--clock", "virtual", "--cpu-cost-factor", "101"), ["--cpu-cost-factor"]),
        (("--clock", "virtual", "--cpu-cost-factor", "fast"), ["--cpu-cost-factor"]),
        (("--cpu-cost-factor", "2"), ["--cpu-cost-factor needs --clock virtual: in real time"]),
        (("--perturb", "0"), ["--perturb and --placebo need --clock virtual"]),
        (("--placebo",), ["--perturb and --placebo need --clock virtual"]),
        (("--clock", "virtual", "--placebo", "--perturb", "0"), ["--placebo needs other CPU costs"]),
        (("--clock", "virtual", "--placebo", "--perturb", "cpu=0%"), ["--placebo needs other CPU costs"]),
    ],
)
def test_faults_of_the_command_line(checkout: Checkout, words: tuple[str, ...], messages: list[str]) -> None:
    err = checkout.refusal(*(() if "-s" in words else GOOD), *words)
    assert all(message in " ".join(err.split()) for message in messages)
    assert checkout.engine.all_lives == []
    assert not (checkout.root / "results").exists()


@pytest.mark.parametrize("command", ["run", "resume"])
def test_wrong_words_are_told_although_another_campaign_runs(
    checkout: Checkout, tmp_path: Path, command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert checkout(*GOOD)[0] == 0
    full = str(checkout.results.resolve())
    words = ["run", *GOOD] if command == "run" else ["resume", full]
    wrong = [
        ("--deadline", "whenever"),
        ("--require", "nothing"),
        ("--hosts", str(tmp_path / "no.yml")),
        ("--expect", str(tmp_path / "no.yml")),
        ("-j", str(tmp_path / "no/results.json")),
        *([("-l", full), ("--locked", str(tmp_path / "no.lock")), ("-s", "goood")] if command == "run" else []),
    ]
    with early(["first"], os.environ):
        for each in wrong:
            assert checkout(*words, *each)[0] == 2, each
        assert f"Another campaign uses this Docker daemon: process {os.getpid()} on " in checkout.err(*words, status=75)
        assert checkout("plan", *GOOD)[0] == checkout("show", full)[0] == 0
        monkeypatch.setattr(campaign_setup, "check_dask", no_dask)
        assert checkout(*words, "--cluster", "tcp://localhost:1")[0] == 3


def no_dask() -> None:
    raise MachineError("Dask is not installed here.")


def test_a_campaign_directory_that_is_in_use(checkout: Checkout, tmp_path: Path) -> None:
    assert checkout(*GOOD, "-l", tmp_path / "mine")[0] == 0
    assert checkout.results.resolve() == tmp_path / "mine"
    assert (tmp_path / "mine/journal.jsonl").exists()
    assert "is not empty" in checkout.refusal(*GOOD, "-l", tmp_path / "mine")


@pytest.mark.parametrize("command", ["run", "plan"])
@pytest.mark.parametrize("place", ["/proc/x/y", "{}/file/x"])
def test_a_campaign_directory_that_cannot_be_made(checkout: Checkout, tmp_path: Path, command: str, place: str) -> None:
    (tmp_path / "file").touch()
    place = place.format(tmp_path)
    status, out, err = checkout(command, *GOOD, "-l", place)
    assert (status, out, checkout.engine.log) == (2, "", [])
    assert err.startswith(f"{place}: no file can be written there: ")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_signals(checkout: Checkout, number: signal.Signals) -> None:
    def interrupt(life: Life) -> int:
        os.kill(os.getpid(), number)
        return hang(life)

    checkout.engine.programs["bad"] = only_as(Role.CLIENT, interrupt)
    before = signal.getsignal(number)
    status, out, err = checkout("-s", "good", "-c", "good", "bad", "-t", "tiny")
    assert status == 128 + number
    assert f"Stopped by signal {number.value}.\n1 of 2 runs are finished and stored." in err
    assert "5.00" in out
    assert checkout.engine.lives == {}
    assert not (checkout.results / "good_bad/tiny/1").exists()
    record = checkout.stored
    assert len(record.results) == 1
    assert record.finished is None
    assert signal.getsignal(number) is before


def test_interruption_before_anything_runs(checkout: Checkout, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: object) -> None:
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(5)  # a signal may take another thread's way

    monkeypatch.setattr(run_campaign, "_images", interrupt)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs ignore it
    try:
        status, _, err = checkout(*GOOD)
    finally:
        signal.signal(signal.SIGINT, before)
    assert status == 130
    assert "Stopped by signal 2." in err


def test_a_campaign_that_cannot_go_on_shows_what_it_has(checkout: Checkout, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("quicsat.execution.worker_pool.OUTAGE_PATIENCE", 0)
    monkeypatch.setattr("quicsat.docker.containers.QUICK", 0.01)

    def pull_the_plug(life: Life) -> int:
        life.engine.gone = True
        return endpoint(life)

    checkout.engine.programs["bad"] = only_as(Role.CLIENT, pull_the_plug)
    status, out, err = checkout("-s", "good", "-c", "good", "bad", "-t", "tiny")
    assert status == 3
    assert "5.00" in out
    assert "No worker could be used for" in err
    assert (checkout.results / "result.json").exists()


@pytest.mark.parametrize("option", ["--timeout", "--baseline"])
@pytest.mark.parametrize(
    ("word", "found"),
    [
        ("5s", 5.0),
        ("2min", 120.0),
        ("1500 ms", 1.5),
        ("90", 90.0),
        ("3.5", 3.5),
        ("5 sec", '"5 sec" has the unknown unit "sec"; units: us, ms, s, min, h; allowed: '),
        ("soon", '"soon" is no duration; allowed: '),
        ("-1", '"-1" is out of range'),
        ("nan", '"nan" is no duration'),
        ("2000 h", '"2000 h" is out of range'),
    ],
)
def test_a_time_has_a_unit_or_is_in_seconds(quicsat: CommandLine, option: str, word: str, found: float | str) -> None:
    if isinstance(found, float):
        assert getattr(cli.parse(["run", option, word]), option.strip("-")) == found
    else:
        assert f"argument {option}: {found}" in quicsat.refusal("run", option, word)


def test_repetitions_timeout_and_seed(checkout: Checkout) -> None:
    assert checkout(*GOOD, "--repetitions", "2", "--timeout", "3.5", "--seed", "5")[0] == 0
    record = checkout.stored
    assert [result.repetition for result in record.results] == [1, 2]
    assert record.manifest.seed == 5
    assert record.manifest.test_cases[0].timeout == 3.5
    seeds = [result.evidence.seed for result in record.results]
    assert checkout(*GOOD, "--repetitions", "2", "--seed", "5")[0] == 0
    assert [result.evidence.seed for result in checkout.stored.results] == seeds
    assert seeds[0] != seeds[1]


def test_a_seed_is_drawn_and_recorded(checkout: Checkout) -> None:
    drawn = set()
    for _ in range(2):
        checkout(*GOOD)
        drawn.add(checkout.stored.manifest.seed)
    assert len(drawn) == 2


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

    monkeypatch.setattr(campaign_setup, "analyse_once", nothing)
    assert "[1/1] good_good/tiny/1: succeeded" in checkout.err(*GOOD, status=0)


def test_hostile_reasons_do_nothing_to_a_terminal(checkout: Checkout, monkeypatch: pytest.MonkeyPatch) -> None:
    def hostile(*_: object) -> tuple[Verdict, None]:
        return Verdict(Outcome.FAILED, ErrorCode.CLIENT_FAILED, "a\x1b[2Jb\x1b]0;title\x07c\nd\x9b1m\u202e"), None

    monkeypatch.setattr(campaign_setup, "analyse_once", hostile)
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


def test_time_is_up_before_all_runs_are_made(checkout: Checkout, monkeypatch: pytest.MonkeyPatch) -> None:
    later = Later()
    monkeypatch.setattr(run_queue, "time", later)

    def dawdle(life: Life) -> int:
        later.pass_by(1000.0)
        return endpoint(life)

    checkout.engine.programs["bad"] = only_as(Role.CLIENT, dawdle)
    words = ("-s", "good", "-c", "bad", "-t", "tiny", "--repetitions", "2", "--shuffle", "--seed", "5")
    err = checkout.err(*words, "--skip-compliance-check", "--max-runtime", "1000 s", status=4)
    assert "No other run is likely to end within 16 min 40 s.\n1 of 2 runs are finished and stored." in err
    assert "1 of 2 runs of" in checkout.out("plan", "--resume", checkout.results.resolve())
    assert checkout("resume", checkout.results.resolve())[0] == 0
    assert checkout.stored.finished is not None


def test_only_pairs_with_an_implementation_are_run(checkout: Checkout) -> None:
    words = ("-s", "good", "bad", "-c", "good", "-t", "tiny", "-i", "bad", "--skip-compliance-check")
    assert "[1/1] bad_good/tiny/1: " in checkout(*words)[2]
    manifest = checkout.stored.manifest
    assert (manifest.servers, manifest.clients, manifest.must_include) == (("bad",), ("good",), ("bad",))


def test_pairs_that_lack_a_required_success_are_skipped(checkout: Checkout) -> None:
    checkout.add_test_case("other", "OT")
    words = ("-s", "good", "-c", "good", "bad", "-t", "tiny", "other", "--skip-compliance-check", "--seed", "1")
    err = checkout.err(*words, "--require", "OT", "--parallel", "2", status=1)
    assert "bad with server good did not succeed in other." in err
    assert "good_bad/other/1: failed" in err
    assert "good_bad/tiny/1" not in err  # one message announces all of them
    again = command_line("resume", checkout.results.resolve(), "--retry", "skipped")
    assert f"1 run was skipped. To make the skipped runs: {again}" in err
    record = checkout.stored
    found = {(each.client, each.test_case): each.verdict.outcome for each in record.results}
    assert found == {
        ("good", "other"): Outcome.SUCCEEDED, ("bad", "other"): Outcome.FAILED,
        ("good", "tiny"): Outcome.SUCCEEDED, ("bad", "tiny"): Outcome.SKIPPED,
    }  # fmt: skip
    assert record.manifest.schedule.required == "other"


# ---- virtual time ---------------------------------------------------------------------------


def test_a_campaign_in_virtual_time(checkout: Checkout) -> None:
    out = checkout.out(*GOOD, "--clock", "virtual", "--cpu-cost-factor", "0.5", "--perturb", "0")
    assert "The runs used virtual time (CPU costs of cost models × 0.5)." in out
    results = checkout.stored
    assert (results.manifest.clock, results.manifest.cpu_cost_factor) == (Clock.VIRTUAL, 0.5)
    assert results.manifest.schedule.testbeds is None
    assert "The runs used virtual time (CPU costs of cost models × 0.5)." in checkout("show")[1]


def test_an_engine_without_root_measures_in_virtual_time_only(
    checkout: Checkout, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = checkout.engine.info()
    monkeypatch.setattr(checkout.engine, "info", lambda: engine | {"SecurityOptions": ["name=rootless"]})
    err = checkout.refusal(*GOOD, status=3)
    assert "runs without root access. Such an engine measures only in virtual time: ./run.py --clock virtual." in err
    assert not (checkout.root / "results").exists()
    assert checkout(*GOOD, "--clock", "virtual")[0] == 0


def test_virtual_time_has_default_costs_and_takes_a_number_of_runs(checkout: Checkout) -> None:
    out = checkout.out(*GOOD, "--clock", "virtual", "--parallel", "1")
    told = f"The runs used virtual time (CPU costs of cost models; perturbed by {USUAL.words})."
    assert told in " ".join(out.split())
    manifest = checkout.stored.manifest
    assert (manifest.cpu_cost_factor, manifest.schedule.testbeds) == (1, 1)
    assert (manifest.amplitudes, manifest.placebo) == (USUAL, False)


def test_amplitudes_and_a_placebo_can_be_asked_for(checkout: Checkout, tmp_path: Path) -> None:
    words = (*GOOD, "--clock", "virtual", "--repetitions", "3")
    assert checkout(*words, "--perturb", "delay=2%, start=0s", "--placebo", "-l", tmp_path / "own")[0] == 0
    own = store.load(tmp_path / "own").result_set
    assert own.manifest.amplitudes == replace(USUAL, delay=0.02, start=0.0)
    assert own.manifest.placebo
    found = {each.repetition: each.evidence.perturbation for each in own.results}
    assert found == {k: perturbation_of(k, own.manifest.amplitudes, placebo=True) for k in (1, 2, 3)}
    assert found[1] != NOMINAL
    assert checkout(*words, "--perturb", "0", "-l", tmp_path / "none")[0] == 0
    none = store.load(tmp_path / "none").result_set
    assert {each.evidence.perturbation for each in none.results} == {NOMINAL}


def test_real_time_is_not_told(checkout: Checkout) -> None:
    _, out, _ = checkout(*GOOD)
    assert "virtual" not in out
    assert checkout.stored.manifest.schedule.testbeds == 1


def test_real_links_have_no_virtual_time(checkout: Checkout) -> None:
    rates = "forward rate: 20 Mbit/s, return rate: 2 Mbit/s"
    checkout.add_test_case("mine", "MR", f"client host: modem, server host: remote, round trip: 600 ms, {rates}")
    err = checkout.refusal("-s", "good", "-c", "good", "-t", "tiny", "mine", "--clock", "virtual")
    assert err == "Real links have no virtual time: leave out --clock virtual, or mine.\n"
    assert checkout.engine.all_lives == []


def test_fast_links_need_virtual_time(checkout: Checkout) -> None:
    words = ("-s", "good", "-c", "good", "-t", "tiny", "fast")
    checkout.add_test_case("fast", "FAST", LINK.replace("20 Mbit/s", "151 Mbit/s"))
    err = checkout.refusal(*words)
    assert err == "In real time, links carry at most 150.00 Mbit/s; use --clock virtual for fast (151.00 Mbit/s).\n"
    assert checkout.engine.all_lives == []
    checkout.add_test_case("fast", "FAST", LINK.replace("20 Mbit/s", "150 Mbit/s"))
    assert checkout(*words)[0] == 0


@pytest.mark.parametrize(
    ("words", "marked"),
    [(("--clock", "virtual"), True), (("--clock", "virtual", "--cpu-cost-factor", "2"), False), ((), False)],
    ids=["virtual", "other costs", "real"],
)
def test_a_campaign_marks_pairs_that_hold_in_virtual_time_only(
    checkout: Checkout, words: tuple[str, ...], *, marked: bool
) -> None:
    """With the CPU costs with which both clocks were compared."""
    known = json.loads((checkout.root / "implementations.json").read_text())
    known["good"]["virtual time only"] = {"date": "2026-11-30", "links": {"tiny": ["good"]}}
    (checkout.root / "implementations.json").write_text(json.dumps(known))
    out = checkout.out("-s", "good", "-c", "good", "-t", "tiny", *words)
    assert ("†" in out, "†" in checkout("show")[1]) == (marked, marked)


@pytest.mark.parametrize("clock", ["real", "virtual"])
def test_a_mark_whose_name_is_unknown_is_told(checkout: Checkout, tmp_path: Path, clock: str) -> None:
    links = {"tiny": ["goood", "bad"], "tiny+page": ["good@1.2"], "tinny": ["*"], "mine": ["odd:bbr"]}
    known = json.loads((checkout.root / "implementations.json").read_text())
    known["good"]["virtual time only"] = {"date": "2026-11-30", "links": links}
    (checkout.root / "implementations.json").write_text(json.dumps(known))
    own = tmp_path / "mine.yaml"
    own.write_text((checkout.root / "testcases/tiny.yaml").read_text().replace("tiny", "mine").replace("TY", "MI"))
    words = ("-s", "good", "-c", "good", "-t", own, "--clock", clock)
    for text in (checkout.out("plan", *words), checkout.err(*words, status=0)):
        told = [line for line in text.splitlines() if "which is unknown" in line]
        assert [line.split('"')[3] for line in told] == (["goood", "odd:bbr", "tinny"] if clock == "virtual" else [])
