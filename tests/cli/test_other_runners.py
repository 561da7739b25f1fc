"""Every option of QIR and of QIR-SE has its meaning, or a sentence that names what to use instead."""

import json
import os
import signal
from pathlib import Path

import pytest

from quicsat.cli import main as cli
from quicsat.model.implementation import Role
from quicsat.model.outcomes import Outcome
from quicsat.results import qir_export, store
from tests.cli.conftest import GOOD, Checkout, CommandLine
from tests.fakes import Life, end_with, endpoint, hang, only_as


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["-p", "quic"], {"protocol": "quic"}),
        (["--protocol", "quic"], {"protocol": "quic"}),
        (["-d"], {"debug": True}),
        (["-s", "a,b"], {"server": ["a,b"]}),
        (["-s", "a", "b"], {"server": ["a", "b"]}),
        (["-c", "a,b"], {"client": ["a,b"]}),
        (["-t", "handshake,transfer"], {"test": ["handshake,transfer"]}),
        (["-t", "onlyTests"], {"test": ["onlyTests"]}),
        (["-r", "a=b,c=d"], {"replace": ["a=b,c=d"]}),
        (["-r", "a=b", "c=d"], {"replace": ["a=b", "c=d"]}),
        (["-p", "webtransport"], {"protocol": "webtransport"}),
        (["-l", "logs"], {"log_dir": Path("logs")}),
        (["--log-dir", "logs"], {"log_dir": Path("logs")}),
        (["-f"], {"save_files": True}),
        (["--save-files"], {"save_files": True}),
        (["-j", "x.json"], {"json": Path("x.json")}),
        (["--json", "x.json"], {"json": Path("x.json")}),
        (["-m"], {"markdown": True}),
        (["--markdown"], {"markdown": True}),
        (["-i", "a"], {"must_include": ["a"]}),
        (["--must-include", "a"], {"must_include": ["a"]}),
        (["--skip-compliance-check"], {"skip_compliance_check": True}),
        (["--shuffle"], {"shuffle": True}),
    ],
)
def test_an_option_with_the_same_meaning(words: list[str], expected: dict[str, object]) -> None:
    given = vars(cli.parse(words))
    assert {name: given[name] for name in expected} == expected


def test_a_pause_has_two_names() -> None:
    theirs, ours = cli.parse(["--pause-between", "18:00-23:00"]), cli.parse(["--pause", "18:00-23:00"])
    assert theirs.pause == ours.pause != []


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["-p", "tcp"], "invalid choice: 'tcp'"),
        (["-f", "files"], "argument -f: it has no value; write -f alone"),
        (["--save-files", "files"], "argument --save-files: it has no value"),
        (["--save-files=yes"], "argument -f/--save-files: it has no value; write -f alone. The results go"),
        (["-fyes"], "argument -f/--save-files: it has no value; write -f alone. The results go"),
        (["--github=1"], "argument --github: it has no value; write --github alone."),
        (["show", "-m=yes"], "argument -m/--markdown: it has no value; write -m alone."),
        (["--retry-failed"], "./run.py resume DIR --retry failed timeout unsupported"),
        (["resume", "results/a", "--retry-failed"], "./run.py resume DIR --retry failed timeout unsupported"),
    ],
)
def test_an_option_that_is_refused_names_what_to_use_instead(
    words: list[str], sentence: str, quicsat: CommandLine
) -> None:
    status, out, err = quicsat(*words)
    assert (status, out, sentence in err, len(err.splitlines())) == (2, "", True, 1)


def test_nothing_is_marked_as_unsupported_because_all_failed(checkout: Checkout) -> None:
    checkout.engine.programs["bad"] = end_with(1)
    for words in ((), ("-n", "bad"), ("-n", "good,BAD:x")):
        assert checkout("-s", "good", "-c", "bad", "-t", "tiny", "--skip-compliance-check", *words)[0] == 1
        [result] = checkout.stored.results
        assert result.verdict.outcome is Outcome.FAILED


@pytest.mark.parametrize("command", ["run", "plan"])
def test_a_name_without_an_effect_is_checked(checkout: Checkout, command: str) -> None:
    err = checkout.refusal(command, *GOOD, "-n", "bad", "goood")
    assert err == '--no-auto-unsupported: No implementation "goood". Did you mean good? Known: good, bad, odd.\n'


def test_results_in_the_format_of_qir_replace_those_of_a_finished_campaign(checkout: Checkout, tmp_path: Path) -> None:
    file = tmp_path / "all.json"
    for _ in range(2):
        assert checkout(*GOOD, "-j", file, "--json-format", "qir")[0] == 0
    written = json.loads(file.read_text())
    assert written == json.loads(json.dumps(qir_export.to_qir(checkout.stored, written["log_dir"])))
    assert "quic_draft" not in written


def test_results_of_a_campaign_that_is_not_finished_are_not_replaced(checkout: Checkout, tmp_path: Path) -> None:
    def interrupt(life: Life) -> int:
        checkout.engine.programs["bad"] = endpoint
        os.kill(os.getpid(), signal.SIGTERM)
        return hang(life)

    file = tmp_path / "all.json"
    checkout.engine.programs["bad"] = only_as(Role.CLIENT, interrupt)
    assert checkout("-s", "good", "-c", "good", "bad", "-t", "tiny", "-j", file)[0] == 128 + signal.SIGTERM
    before = file.read_bytes()
    status, out, err = checkout(*GOOD, "-j", file)
    assert (status, out, file.read_bytes()) == (2, "", before)
    command = next(line for line in err.splitlines() if "./run.py resume" in line).partition("./run.py ")[2]
    assert checkout(*command.split())[0] == 0
    assert checkout.stored.finished is not None
    assert len(json.loads(file.read_text())["measurements"]) == 2


def test_results_may_be_in_the_directory_of_the_logs(checkout: Checkout, tmp_path: Path) -> None:
    logs, file = tmp_path / "logs_1", tmp_path / "logs_1/qir.json"
    assert checkout(*GOOD, "-l", logs, "-j", file)[0] == 0
    assert json.loads(file.read_text())["log_dir"] == "logs_1"
    assert checkout(*GOOD, "-j", file)[0] == 0
    assert json.loads(file.read_text())["log_dir"] != "logs_1"


@pytest.mark.parametrize("theirs", ["logs_2021-11-01", "/nowhere", "a\0b", "a\ud800b", "x" * 300, "loop", "loop/a"])
def test_results_of_another_runner_are_not_replaced(checkout: Checkout, tmp_path: Path, theirs: str) -> None:
    file = tmp_path / "all.json"
    (tmp_path / "loop").symlink_to("loop")
    file.write_text(json.dumps({"log_dir": theirs, "servers": [], "clients": [], "measurements": []}))
    assert "Choose another file" in checkout.err(*GOOD, "-j", file, status=2)


@pytest.mark.parametrize("command", ["run", "plan", "resume"])
@pytest.mark.parametrize("content", ["no JSON", "[]", '{"a": 1}', "[" * 100_000])
def test_a_file_without_results_is_not_replaced(checkout: Checkout, tmp_path: Path, command: str, content: str) -> None:
    file = tmp_path / "notes.txt"
    if command == "resume":
        assert checkout(*GOOD)[0] == 0
    words = ("resume", str(checkout.results)) if command == "resume" else (command, *GOOD)
    runs_before = len(checkout.engine.all_lives)
    file.write_text(content)
    status, out, err = checkout(*words, "-j", file)
    assert (status, out, file.read_text(), len(checkout.engine.all_lives)) == (2, "", content, runs_before)
    assert err == f"{file}: exists, and does not hold results that -j can replace. Choose another file.\n"


def test_a_large_file_is_not_replaced(checkout: Checkout, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "all.json"
    assert checkout(*GOOD, "-j", file)[0] == 0
    monkeypatch.setattr("quicsat.cli.other_runners.LARGEST_JSON", file.stat().st_size - 1)
    assert checkout(*GOOD, "-j", file)[0] == 2


def test_an_empty_file_is_replaced(checkout: Checkout, tmp_path: Path) -> None:
    file = tmp_path / "all.json"
    file.touch()
    assert checkout(*GOOD, "-j", file)[0] == 0
    assert json.loads(file.read_text())["clients"] == ["good"]


def test_the_results_of_a_campaign_may_replace_its_result_json(checkout: Checkout) -> None:
    assert checkout(*GOOD)[0] == 0
    file = checkout.results.resolve() / store.DOCUMENT
    assert checkout("resume", checkout.results, "-j", file)[0] == 0
    assert json.loads(file.read_text())["log_dir"] == file.parent.name


def test_resume_replaces_no_results_of_other_unfinished_campaigns(checkout: Checkout, tmp_path: Path) -> None:
    file = tmp_path / "all.json"
    assert checkout(*GOOD, "--repetitions", "2", "-j", file)[0] == 0
    first = checkout.results.resolve()
    journal = first / store.JOURNAL
    lines = journal.read_text().splitlines(keepends=True)
    journal.write_text("".join(line for line in lines if '"repetition": 2' not in line and "finished" not in line))
    assert store.load(first).result_set.finished is None
    assert checkout(*GOOD)[0] == 0
    assert f"./run.py resume {first}" in checkout.err("resume", checkout.results, "-j", file, status=2)
    assert checkout("resume", first, "-j", file)[0] == 0
