"""``./run.py baseline``, and the options of ``run`` for CI systems."""

import json
import os
import re
import signal
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest

from quicsat.cli import continuous_integration
from quicsat.cli.exit_status import ExitStatus
from quicsat.model.errors import MachineError
from quicsat.model.implementation import Role
from quicsat.model.outcomes import Outcome
from quicsat.model.results import ResultSet, RunResult
from quicsat.plots.discovery import draw as figures
from quicsat.results import store
from quicsat.results.baseline import reduced
from quicsat.results.store import write_result_json
from tests.cli.conftest import TEST_CASE, Checkout, CommandLine, Draws
from tests.fakes import Life, endpoint, hang, only_as
from tests.results_builder import result_set, run_result, runs, virtual

GOOD = ("-s", "good", "-c", "good", "-t", "tiny", "--seed", "7")


def stored(place: Path, results: ResultSet) -> str:
    """A campaign on disk."""
    place.mkdir()
    write_result_json(place, results)
    return str(place)


@pytest.fixture
def campaigns(tmp_path: Path) -> tuple[str, str]:
    """Two campaigns of ten members in virtual time; the second is 10 % slower."""
    return tuple(  # type: ignore[return-value]
        stored(tmp_path / name, virtual(result_set(runs(*[rate] * 10), repetitions=10)))
        for name, rate in (("before", 8e6), ("after", 7.2e6))
    )


@pytest.fixture
def saved(campaigns: tuple[str, str], tmp_path: Path, quicsat: CommandLine) -> Path:
    """The baseline of the first campaign."""
    quicsat.out("baseline", "save", campaigns[0], tmp_path / "b.json")
    return tmp_path / "b.json"


@pytest.fixture
def summary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The step summary of GitHub Actions."""
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(tmp_path / "summary.md"))
    return tmp_path / "summary.md"


def test_save_and_check(campaigns: tuple[str, str], saved: Path, quicsat: CommandLine) -> None:
    assert "Nothing is worse than expected: 1 passed." in quicsat.out("baseline", "check", campaigns[0], saved)
    out = quicsat.out("baseline", "check", campaigns[1], saved, status=1)
    assert "sat, server picoquic, client quiche: slower than the baseline" in out
    assert "The goodput changed by -10.0 % (" in out
    assert "10/10 members), from 8.00 Mbit/s to 7.20 Mbit/s." in out
    assert "Loss of goodput that would have been found with 80 % power: 1.0 % in a single cell" in out
    quicsat.out("compare", saved, campaigns[1], status=1)


def test_a_baseline_holds_what_comparisons_need_and_no_evidence(campaigns: tuple[str, str], saved: Path) -> None:
    document = json.loads(saved.read_text())
    result = document["results"][0]
    assert result["measurement"]["values"]["goodput"] == 8e6
    assert result["evidence"]["seed"] == store.load(Path(campaigns[0])).result_set.results[0].evidence.seed > 0
    assert result["evidence"]["phases"] == {}
    manifest = document["manifest"]
    assert (manifest["clock"], manifest["seed"], manifest["command"]) == ("virtual", 1, [])


def test_save_replaces_an_earlier_baseline_and_an_empty_file(
    campaigns: tuple[str, str], tmp_path: Path, quicsat: CommandLine
) -> None:
    file = tmp_path / "result.json"
    file.touch()
    for place in campaigns:
        quicsat.out("baseline", "save", place, file)
        assert store.load(file).result_set == reduced(store.load(Path(place)).result_set)


@pytest.mark.parametrize("kind", ["text", "export", "campaign"])
def test_save_replaces_nothing_else(
    campaigns: tuple[str, str], tmp_path: Path, kind: str, quicsat: CommandLine
) -> None:
    first, second = campaigns
    file = Path(second) / "result.json" if kind == "campaign" else tmp_path / "file"
    if kind == "text":
        file.write_text("# quicsat\n")
    elif kind == "export":
        quicsat.out("export", first, file)
    before = file.read_bytes()
    err = quicsat.err("baseline", "save", first, file, status=2)
    assert err == f"FILE: {file} exists, and is no earlier baseline. Choose another file.\n"
    assert file.read_bytes() == before


@pytest.mark.parametrize(
    ("results", "words"),
    [
        (result_set(runs(8e6), repetitions=2), "1 of 2 runs have a valid result"),
        (result_set([run_result(None, outcome=Outcome.ERROR)], repetitions=1), "0 of 1 run has a valid result"),
    ],
)
def test_a_campaign_that_is_not_whole_is_no_baseline(
    results: ResultSet, words: str, tmp_path: Path, quicsat: CommandLine
) -> None:
    place = stored(tmp_path / "a", results)
    err = quicsat.err("baseline", "save", place, tmp_path / "b.json", status=2)
    assert words in err
    assert err.endswith(f" cannot be a baseline. To continue it: ./run.py resume {place}\n")
    assert not (tmp_path / "b.json").exists()


def test_save_refuses_options_of_check(campaigns: tuple[str, str], tmp_path: Path, quicsat: CommandLine) -> None:
    file = tmp_path / "baseline.json"
    err = quicsat.err("baseline", "save", campaigns[0], file, "--junit", tmp_path / "j.xml", status=2)
    assert "are for `baseline check`" in err
    assert not file.exists()


def test_a_campaign_that_cannot_be_compared_leaves_no_earlier_verdict(
    campaigns: tuple[str, str], saved: Path, tmp_path: Path, summary: Path, quicsat: CommandLine
) -> None:
    real = stored(tmp_path / "real", result_set(runs(8e6), repetitions=1))
    junit, comment = tmp_path / "j.xml", tmp_path / "c.md"
    words = ["--junit", str(junit), "--comment", str(comment), "--github"]
    quicsat.out("baseline", "check", campaigns[0], saved, *words)
    assert "✅" in comment.read_text()
    summary.unlink()
    out = quicsat.out("baseline", "check", real, saved, *words, status=2)
    refused_reports(junit, comment, "The baseline used virtual time")
    assert summary.read_text() == comment.read_text()
    assert out.splitlines()[-1].startswith("::error title=quicsat::The baseline used virtual time")


def refused_reports(junit: Path, comment: Path, fault: str) -> None:
    """Check reports of a campaign that cannot be compared."""
    root = ElementTree.parse(junit).getroot()
    assert (root.get("tests"), root.get("failures"), root.get("errors")) == ("1", "0", "1")
    [error] = root.findall(".//testcase/error")
    assert error.get("message", "").startswith(f"The campaign cannot be compared with the baseline: {fault}")
    text = comment.read_text()
    assert text.startswith("### ❌ quicsat: no verdict\n\nThe campaign cannot be compared with the baseline:\n\n- ")
    assert fault in text.replace("`", "")


def test_a_file_that_is_missing_or_no_baseline(
    campaigns: tuple[str, str], tmp_path: Path, quicsat: CommandLine
) -> None:
    assert "baseline save" in quicsat.err("baseline", "check", campaigns[0], tmp_path / "no.json", status=2)
    (tmp_path / "bad.json").write_text("{}")
    quicsat.refusal("baseline", "check", campaigns[0], tmp_path / "bad.json")


def test_what_is_no_file_is_called_what_it_is(
    campaigns: tuple[str, str], saved: Path, tmp_path: Path, quicsat: CommandLine
) -> None:
    place, expect = campaigns[0], tmp_path / "e.yml"
    for action in ("save", "check"):
        err = quicsat.refusal("baseline", action, saved, place)
        right = f"{place}: is a directory. If it is that of the campaign, name it first: ./run.py baseline {action} "
        assert f"{right}{place} {saved}\n" in err
    for other, kind in ((place, "a directory"), ("/dev/null", "no regular file")):
        assert f"{other}: is {kind}. Name a file" in quicsat.err("baseline", "check", place, other, status=2)
    expect.write_text("baseline: .\n")
    err = quicsat.err("run", "-s", "quic-go", "-c", "quic-go", "--expect", expect, status=2)
    assert f"{tmp_path}: is a directory. Name a file" in err


def test_check_draws_the_changed_cells_next_to_the_comment(
    campaigns: tuple[str, str], saved: Path, tmp_path: Path, quicsat: CommandLine
) -> None:
    target = tmp_path / "out"
    target.mkdir()
    draws = Draws()
    comment = target / "comment.md"
    quicsat.out("baseline", "check", campaigns[1], saved, "--comment", comment, draw=draws, status=1)
    members, request = draws.requests
    assert (members.plots, members.formats, members.target) == (("members",), ("png",), target)
    assert members.baseline is not None
    assert "Change of each member: `a.svg` in the same directory" in comment.read_text()
    assert (request.plots, request.formats, request.target) == (("offset",), ("png",), target)
    assert (request.pairs, request.test_cases) == ((("picoquic", "quiche"),), ("sat",))
    assert "Time-offset diagram: `a.svg` in the same directory" in comment.read_text()


def test_a_series_that_cannot_be_read_costs_only_its_picture(
    campaigns: tuple[str, str], saved: Path, tmp_path: Path, summary: Path, quicsat: CommandLine
) -> None:
    place, target = Path(campaigns[1]), tmp_path / "out"
    target.mkdir()
    run = place / "picoquic_quiche/sat/1"
    run.mkdir(parents=True)
    (run / "series.parquet").write_text("no parquet")
    words = ["--comment", str(target / "c.md"), "--junit", str(target / "j.xml"), "--github"]
    status, out, err = quicsat("baseline", "check", place, saved, *words, draw=figures)
    assert status == 1
    lines = out.splitlines()
    token = lines[0].removeprefix("::stop-commands::")
    after = lines[lines.index(f"::{token}::") + 1 :]
    assert after[0].startswith("::error title=sat%2C server picoquic%2C client quiche%3A slower than the baseline::")
    assert after[-1].startswith("::notice title=quicsat::There is no time-offset diagram of sat, picoquic, quiche: ")
    assert "[Errno" not in after[-1]
    for text in (err, summary.read_text(), (target / "c.md").read_text()):
        assert "There is no time-offset diagram of sat, picoquic, quiche: " in text
        assert "analyse the run again." in text
    assert (target / "j.xml").is_file()


def test_a_campaign_in_a_file_has_no_pictures(
    campaigns: tuple[str, str], saved: Path, tmp_path: Path, quicsat: CommandLine
) -> None:
    campaign, draws = Path(campaigns[1]) / "result.json", Draws()
    words = ["baseline", "check", str(campaign), str(saved), "--comment", str(tmp_path / "c.md")]
    quicsat.out(*words, draw=draws, status=1)
    assert draws.requests == []
    text = (tmp_path / "c.md").read_text().replace("`", "")
    assert f"There are no time-offset diagrams, because {campaign} is a file" in text


def test_github_reads_commands_again_after_a_fault(
    checkout: Checkout, summary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise MachineError("The disk is full.")

    monkeypatch.setattr(continuous_integration, "write_atomically", full)
    out = checkout.out(*GOOD, "--github", "--comment", str(summary.parent / "c.md"), status=3)
    first, *_, last = out.splitlines()
    assert last == f"::{first.removeprefix('::stop-commands::')}::"


def test_expectations_excuse_what_the_baseline_does_not(
    campaigns: tuple[str, str], saved: Path, tmp_path: Path, quicsat: CommandLine
) -> None:
    expect = tmp_path / "expect.yml"
    expect.write_text("regression: 15 %\n")
    quicsat.out("baseline", "check", campaigns[1], saved, "--expect", expect)
    expect.write_text("regression: 15 %\ngoodput floors: [{test: sat, floor: 7.5 Mbit/s}]\n")
    quicsat.out("baseline", "check", campaigns[1], saved, "--expect", expect, status=1)


@pytest.mark.parametrize("others", [[], runs(8e6)])
def test_a_run_that_ended_in_an_error_has_its_own_exit_status(
    others: list[RunResult], saved: Path, tmp_path: Path, quicsat: CommandLine
) -> None:
    results = [*others, run_result(None, repetition=2, outcome=Outcome.ERROR)]
    place = stored(tmp_path / "faulty", virtual(result_set(results, repetitions=2)))
    quicsat.out("baseline", "check", place, saved, status=3)


@pytest.mark.parametrize("name", ["journal.jsonl", "result.json", "link"])
def test_save_never_replaces_the_results_of_a_campaign(checkout: Checkout, tmp_path: Path, name: str) -> None:
    assert checkout(*GOOD)[0] == 0
    place = checkout.results.resolve()
    (place / "link").symlink_to("journal.jsonl")
    before = (place / "journal.jsonl").read_bytes(), (place / "result.json").read_bytes()
    err = checkout.err("baseline", "save", checkout.results, str(place / name), status=2)
    assert f"FILE: {place / name}: campaigns keep their results in files of this name." in err
    assert before == ((place / "journal.jsonl").read_bytes(), (place / "result.json").read_bytes())


def test_save_never_replaces_the_file_that_it_reads(
    campaigns: tuple[str, str], tmp_path: Path, quicsat: CommandLine
) -> None:
    file = Path(campaigns[0]) / "result.json"
    copy = tmp_path / "copy.json"
    copy.hardlink_to(file)
    for name in (file, copy):
        quicsat.refusal("baseline", "save", file, name)
        quicsat.refusal("baseline", "save", campaigns[0], file)
    assert store.load(file).result_set.results


CLASHES = {
    "--junit x --comment x": "--comment: x is also what --junit names.",
    "--junit x --comment sub/../x": "--comment: sub/../x is also what --junit names.",
    "--junit b.json": "--junit: b.json is also what FILE names.",
    "--expect e.yml --comment e.yml": "--comment: e.yml is also what --expect names.",
    "--github --comment summary.md": "--comment: summary.md is also what GITHUB_STEP_SUMMARY names.",
    "--junit after/journal.jsonl": "--junit: after/journal.jsonl: campaigns keep their results",
    "--comment after/result.json": "--comment: after/result.json: campaigns keep their results",
}


@pytest.mark.parametrize("words", CLASHES)
def test_check_writes_to_no_file_twice_and_to_none_that_it_reads(
    saved: Path, summary: Path, words: str, monkeypatch: pytest.MonkeyPatch, quicsat: CommandLine
) -> None:
    monkeypatch.chdir(saved.parent)
    Path("sub").mkdir()
    Path("e.yml").write_text("regression: 1 %\n")
    kept = {name: Path(name).read_bytes() for name in ("b.json", "e.yml", "after/result.json")}
    assert CLASHES[words] in quicsat.err("baseline", "check", "after", "b.json", *words.split(), status=2)
    assert {name: Path(name).read_bytes() for name in kept} == kept
    assert not Path("x").exists()


def test_reports_may_go_to_the_same_device(
    campaigns: tuple[str, str], saved: Path, tmp_path: Path, quicsat: CommandLine
) -> None:
    words = ["baseline", "check", campaigns[1], str(saved)]
    os.mkfifo(tmp_path / "pipe")
    reader = os.open(tmp_path / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    draws = Draws()
    quicsat.out(*words, "--junit", f"{tmp_path}/pipe", "--comment", f"{tmp_path}/pipe", draw=draws, status=1)
    assert b"</testsuites>\n### " in os.read(reader, 100_000)
    os.close(reader)
    assert draws.requests == []


def test_two_baselines_are_refused(campaigns: tuple[str, str], tmp_path: Path, quicsat: CommandLine) -> None:
    one, other, expect = tmp_path / "one.json", tmp_path / "other.json", tmp_path / "e.yml"
    for place, file in zip(campaigns, (one, other), strict=True):
        quicsat.out("baseline", "save", place, file)
    expect.write_text("baseline: other.json\n")
    words = ["baseline", "check", campaigns[0], str(one), "--expect", str(expect)]
    err = quicsat.err(*words, status=2)
    assert f"{expect} names the baseline {other}, and FILE is {one}. Remove one of the two." in err
    other.unlink()
    quicsat.out(*words)
    other.symlink_to("one.json")
    quicsat.out(*words)


# ---- run --------------------------------------------------------------------------------------


def test_run_with_a_known_failure(checkout: Checkout, tmp_path: Path) -> None:
    expect = tmp_path / "expect.yml"
    words = ("-s", "good", "-c", "good", "bad", "-t", "tiny", "--expect", str(expect))
    expect.write_text("known failures: [{client: bad, reason: issue 7}]\n")
    out = checkout.out(*words, "--junit", tmp_path / "junit.xml")
    assert "Nothing is worse than expected: 1 known failure, 1 passed." in out
    root = ElementTree.parse(tmp_path / "junit.xml").getroot()
    assert (root.get("tests"), root.get("failures"), root.get("skipped")) == ("2", "0", "1")
    expect.write_text("known failures: [{client: good}]\n")
    out = checkout.out(*words, status=1)
    assert "tiny, server good, client bad: unexpected failure" in out
    assert "Failed (client-failed): " in out
    assert "tiny, server good, client good: unexpected success" in out


@pytest.mark.parametrize("command", ["run", "plan", "resume", "baseline"])
def test_a_misspelled_expectation_is_refused(checkout: Checkout, tmp_path: Path, command: str) -> None:
    assert checkout(*GOOD)[0] == 0
    place, file, expect = str(checkout.results.resolve()), str(tmp_path / "b.json"), tmp_path / "expect.yml"
    assert checkout("baseline", "save", place, file)[0] == 0
    words = {"run": ["run", *GOOD], "plan": ["plan", *GOOD], "resume": ["resume", place]}
    expect.write_text("goodput floors: [{server: goood, client: bad, test: tinny, floor: 1 Mbit/s}]\n")
    status, out, err = checkout(*words.get(command, ["baseline", "check", place, file]), "--expect", expect)
    assert (status, out) == (2, "")
    assert '"goood" is no implementation and no variant. Did you mean good?' in err
    assert '"tinny" is no test case and no family. Did you mean tiny?' in err


def test_an_expectation_may_name_a_test_case_of_the_campaign(checkout: Checkout, tmp_path: Path) -> None:
    (tmp_path / "own.yaml").write_text(TEST_CASE.replace("name: tiny", "name: own").replace("TY", "OWN"))
    (tmp_path / "expect.yml").write_text("goodput floors: [{test: OWN, floor: 1 Mbit/s}]\n")
    words = ("-s", "good", "-c", "good", "-t", str(tmp_path / "own.yaml"), "--expect", str(tmp_path / "expect.yml"))
    assert checkout(*words)[0] == 0


def test_reports_do_not_change_the_exit_status(checkout: Checkout, tmp_path: Path) -> None:
    out = checkout.out("-s", "good", "-c", "bad", "-t", "tiny", "--comment", tmp_path / "c.md", status=1)
    assert "worse than expected" not in out
    assert "### ❌" in (tmp_path / "c.md").read_text()


def test_github_gets_a_summary_and_annotations(checkout: Checkout, summary: Path) -> None:
    summary.write_text("before\n")
    out = checkout.out("-s", "good", "-c", "bad", "-t", "tiny", "--github", status=1)
    assert summary.read_text().startswith("before\n### ❌ quicsat")
    lines = out.splitlines()
    token = lines[0].removeprefix("::stop-commands::")
    assert re.fullmatch("[0-9a-f]{32}", token)
    begin = lines.index(f"::{token}::")
    assert lines[begin + 1].startswith("::error title=tiny%2C server good%2C client bad%3A unexpected failure::")
    assert not any(line.startswith("::") for line in lines[1:begin])
    assert next(n for n, line in enumerate(lines) if "unexpected failure" in line) >= begin


def test_github_without_its_variable(checkout: Checkout, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GITHUB_STEP_SUMMARY", raising=False)
    assert "GITHUB_STEP_SUMMARY" in checkout.err(*GOOD, "--github", status=2)


def test_run_with_a_baseline(checkout: Checkout, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert checkout(*GOOD)[0] == 0
    assert checkout("baseline", "save", checkout.results, tmp_path / "b.json")[0] == 0
    expect = tmp_path / "expect.yml"
    expect.write_text("baseline: b.json\n")
    out = checkout.out(*GOOD, "--expect", expect, status=ExitStatus.UNDECIDED)
    assert "Use more repetitions" not in out.splitlines()[-1]
    assert out.splitlines()[-1].startswith("Undecided")
    runs_before = len(checkout.engine.all_lives)
    reports = ("--junit", str(tmp_path / "j.xml"), "--comment", str(tmp_path / "c.md"))
    for words in (("plan", *reports), ("-l", str(tmp_path / "new"), "--junit", str(tmp_path / "new/j.xml"))):
        assert checkout(*words, *GOOD, "--clock", "virtual", "--expect", expect)[0] == 2
        assert not (tmp_path / "j.xml").exists()
    err = checkout.err(*GOOD, "--clock", "virtual", "--expect", expect, *reports, status=2)
    refused_reports(tmp_path / "j.xml", tmp_path / "c.md", "The baseline used real time: use --clock real.")
    assert "The baseline used real time: use --clock real." in err
    assert len(checkout.engine.all_lives) == runs_before


def test_another_image_of_a_partner_is_refused_before_the_first_run(
    checkout: Checkout, tmp_path: Path, summary: Path
) -> None:
    assert checkout(*GOOD)[0] == 0
    assert checkout("baseline", "save", checkout.results, tmp_path / "b.json")[0] == 0
    document = json.loads((tmp_path / "b.json").read_text())
    document["manifest"]["images"]["good"]["id"] = "sha256:0123456789abcdef"
    (tmp_path / "b.json").write_text(json.dumps(document))
    (tmp_path / "expect.yml").write_text("baseline: b.json\n")
    reports = ("--junit", str(tmp_path / "j.xml"), "--comment", str(tmp_path / "c.md"), "--github")
    lives, campaigns = len(checkout.engine.all_lives), set(checkout.results.parent.iterdir())
    status, out, err = checkout(*GOOD, "--expect", tmp_path / "expect.yml", *reports)
    assert status == ExitStatus.USAGE
    fault = "The image of good is not that of the baseline (version 1.0, image 0123456789ab → good)."
    assert fault in err
    refused_reports(tmp_path / "j.xml", tmp_path / "c.md", fault)
    assert summary.read_text() == (tmp_path / "c.md").read_text()
    assert out.splitlines()[-1].startswith("::error")
    assert len(checkout.engine.all_lives) == lives
    assert set(checkout.results.parent.iterdir()) == campaigns


def test_resume_judges_as_well(checkout: Checkout, tmp_path: Path) -> None:
    assert checkout("-s", "good", "-c", "bad", "-t", "tiny")[0] == 1
    expect = tmp_path / "expect.yml"
    expect.write_text("known failures: [{client: bad}]\n")
    assert checkout("resume", checkout.results, "--expect", expect)[0] == 0


def test_reports_of_an_interrupted_campaign_say_so(checkout: Checkout, tmp_path: Path, summary: Path) -> None:
    def interrupt(life: Life) -> int:
        os.kill(os.getpid(), signal.SIGINT)
        return hang(life)

    checkout.engine.programs["bad"] = only_as(Role.CLIENT, interrupt)
    words = ("-s", "good", "-c", "good", "bad", "-t", "tiny", "--junit", str(tmp_path / "junit.xml"), "--github")
    status, out, _ = checkout(*words)
    assert status == 128 + signal.SIGINT
    assert "::warning title=quicsat::1 of 2 runs measured; unfinished." in out
    assert summary.read_text().startswith("### ⚠️ quicsat: the campaign is unfinished\n\n**1 of 2 runs measured; unf")
    root = ElementTree.parse(tmp_path / "junit.xml").getroot()
    assert (root.get("tests"), root.get("failures"), root.get("errors")) == ("2", "0", "1")
    [unfinished] = root.findall(".//testcase[@name='server good, client bad']/error")
    assert (unfinished.get("type"), unfinished.get("message")) == ("unfinished", "Remaining runs of this cell: 1.")


@pytest.mark.parametrize(
    ("finished", "status", "told"),
    [
        (False, ExitStatus.FAILURE, "1 of 2 runs measured; unfinished.\nThe campaign is unfinished: 1 unfinished."),
        (True, ExitStatus.FAILURE, "0 of 2 runs measured; unfinished.\nThe campaign is unfinished: 1 unfinished."),
    ],
)
def test_a_campaign_that_lacks_results_never_passes_a_check(
    checkout: Checkout, tmp_path: Path, finished: bool, status: ExitStatus, told: str
) -> None:
    assert checkout(*GOOD, "--repetitions", "2")[0] == 0
    file = str(tmp_path / "b.json")
    checkout("baseline", "save", checkout.results, file)
    whole = store.load(checkout.results).result_set
    cut = replace(whole, results=()) if finished else replace(whole, results=whole.results[:1], finished=None)
    assert told in checkout.out("baseline", "check", stored(tmp_path / "cut", cut), file, status=status)


@pytest.mark.parametrize("option", ["--expect", "--junit", "--comment", "-j"])
def test_an_option_with_a_file_is_given_once(checkout: Checkout, option: str) -> None:
    err = checkout.refusal(*GOOD, option, "a", option, "b")
    assert f"argument {option}: is given more than once; name one file." in err


@pytest.mark.parametrize("option", ["--expect", "--junit", "--comment", "-j"])
@pytest.mark.parametrize("file", ["no/such/file", "/proc/file"])
def test_a_file_that_cannot_be_read_or_written_stops_before_the_first_run(
    checkout: Checkout, option: str, file: str
) -> None:
    assert file in checkout.err(*GOOD, option, file, status=2)
    assert checkout.engine.all_lives == []


@pytest.mark.parametrize("option", ["--junit", "--comment"])
def test_a_report_replaces_only_an_earlier_one(checkout: Checkout, tmp_path: Path, option: str) -> None:
    file = tmp_path / "report"
    file.touch()
    for _ in range(2):
        assert checkout(*GOOD, option, file)[0] == 0
    assert "quicsat" in file.read_text()
    for content in ("# quicsat: my notes", '<?xml version="1.0"?><project name="quicsat"/>'):
        file.write_text(content)
        runs_before = len(checkout.engine.all_lives)
        for words in (GOOD, ("plan", *GOOD), ("resume", str(checkout.results))):
            fault = f"{option}: {file} exists, and is no earlier report of quicsat. Choose another file.\n"
            assert checkout.err(*words, option, file, status=2) == fault
        assert (file.read_text(), len(checkout.engine.all_lives)) == (content, runs_before)


@pytest.mark.parametrize("file", ["no/such/file", "/proc/file"])
def test_a_step_summary_that_cannot_be_written_stops_before_the_first_run(
    checkout: Checkout, file: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", file)
    assert checkout.err(*GOOD, "--github", status=2).startswith(f"--github: {file}: cannot be written: ")
    assert checkout.engine.all_lives == []


@pytest.mark.parametrize("option", ["-j", "--junit"])
def test_results_are_named_although_a_file_cannot_be_written_at_the_end(
    checkout: Checkout, tmp_path: Path, option: str
) -> None:
    (tmp_path / "gone").mkdir()

    def spoil(life: Life) -> int:
        (tmp_path / "gone").rmdir()
        return endpoint(life)

    checkout.engine.programs["good"] = only_as(Role.CLIENT, spoil)
    words = (*GOOD, "--skip-compliance-check", option, str(tmp_path / "gone/file"))
    status, out, err = checkout(*words)
    assert status == 3
    assert f"Results: {checkout.results.resolve()}" in out
    assert "gone/file: cannot be written: No such file or directory." in err


@pytest.mark.parametrize("command", ["run", "plan"])
@pytest.mark.parametrize(
    ("words", "fault"),
    [
        ("-l new -j new/journal.jsonl", "-j: new/journal.jsonl: campaigns keep their results"),
        ("-l new --junit new/result.json", "--junit: new/result.json: campaigns keep their results"),
        ("-l new -j new", "-j: new is also what -l names."),
        ("-t ./own.yaml -j own.yaml", "-j: own.yaml is also what -t names."),
        ("-j x --junit x", "--junit: x is also what -j names."),
        ("--expect e.yml --junit b.json", "--junit: b.json is also what the key baseline of e.yml names."),
    ],
)
def test_outputs_of_a_new_campaign_are_checked_before_it_starts(
    checkout: Checkout, tmp_path: Path, command: str, words: str, fault: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert checkout(*GOOD)[0] == 0
    monkeypatch.chdir(tmp_path)
    assert checkout("baseline", "save", checkout.results, "b.json")[0] == 0
    Path("e.yml").write_text("baseline: b.json\n")
    Path("own.yaml").write_text(TEST_CASE.replace("name: tiny", "name: own").replace("TY", "OWN"))
    runs_before = len(checkout.engine.all_lives)
    assert fault in checkout.err(command, *GOOD, *words.split(), status=2)
    assert len(checkout.engine.all_lives) == runs_before


def test_all_outputs_may_be_in_the_directory_of_a_new_campaign(
    checkout: Checkout, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    words = "-l new -j new/result.json --junit new/x.xml --comment new/x.md"
    assert checkout(*GOOD, *words.split())[0] == 0
    assert "log_dir" in json.loads(Path("new/result.json").read_text())
    assert all((tmp_path / "new" / name).is_file() for name in ("x.xml", "x.md", "journal.jsonl"))


def test_a_placebo_is_saved_with_the_baseline_and_used(
    campaigns: tuple[str, str], tmp_path: Path, quicsat: CommandLine
) -> None:
    """Calm members that differ from each other, so that only pairing finds a loss of 2 %."""
    places = {}
    for number, (name, factor) in enumerate((("base", 1.0), ("again", 1.001), ("slower", 0.98))):
        rates = [
            8e6 * factor * (1 + 0.1 * member) * (1 + 0.0005 * ((member * (number + 3)) % 4)) for member in range(10)
        ]
        made = virtual(result_set(runs(*rates), repetitions=10))
        made = replace(made, manifest=replace(made.manifest, placebo=name == "again"))
        places[name] = stored(tmp_path / name, made)
    file = str(tmp_path / "b.json")
    compared = ["compare", places["base"], places["slower"]]
    assert f"{places['slower']}: is no placebo" in quicsat.err(*compared, "--placebo", places["slower"], status=2)
    quicsat.out("baseline", "save", places["base"], file, "--placebo", places["again"])
    assert len(store.load(Path(file)).result_set.placebo) == 10
    for words in ([*compared, "--placebo", places["again"]], ["baseline", "check", places["slower"], file]):
        assert "10/10" in quicsat.out(*words, status=1)
    quicsat.refusal("baseline", "check", places["base"], file, "--placebo", places["again"])
    for words in (
        ["compare", places["again"], places["slower"]],
        ["compare", places["base"], places["again"]],
        ["baseline", "save", places["again"], str(tmp_path / "c.json")],
    ):
        assert "--placebo" in quicsat.err(*words, status=2)
    assert not (tmp_path / "c.json").exists()
    quicsat.out("baseline", "check", places["again"], file, status=2)
