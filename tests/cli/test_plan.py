"""``./run.py plan`` shows runs, images, duration and disk space, and changes nothing."""

from pathlib import Path

import pytest

from quicsat.cli import dry_run
from quicsat.cli.commands import parser_of
from quicsat.cli.main import parse
from quicsat.cli.select_runs import select
from quicsat.plan.duration_estimate import Durations
from quicsat.results import store
from tests.cli.conftest import GOOD, ROOT, Checkout


def test_a_plan_shows_all_and_touches_nothing(checkout: Checkout) -> None:
    words = ("--shuffle", "--seed", "5", "--deadline", "06:00", "--pause", "01:00-02:00", "--breaker", "3")
    out = checkout.out("plan", *GOOD, "--repetitions", "2", *words, "--all")
    assert "2 runs; their transfers take 10.0 s at most." in out
    assert "image of" in out
    assert "No run starts during 01:00-02:00" in out
    assert "Estimated duration: " in out
    assert "Disk space needed: " in out
    assert checkout.engine.all_lives == []
    assert checkout.engine.log == []
    assert not (checkout.root / "results").exists()


def test_a_plan_without_an_engine(checkout: Checkout) -> None:
    checkout.engine.gone = True
    status, out, err = checkout("plan", *GOOD)
    assert (status, err, "Images: unknown. No Docker daemon answers" in out) == (0, "", True)


def test_a_plan_checks_images_that_replace_others(checkout: Checkout) -> None:
    out = checkout.out("plan", *GOOD, "-r", "good=me/gone:1", "--all")
    [row] = [line for line in out.splitlines() if line.startswith("│ good ")]
    assert [word.strip() for word in row.strip("│").split("│")] == ["good", "given", "not here", "", "me/gone:1"]
    assert "me/gone:1, which replaces the image of good, is not on this machine: the campaign has to pull it." in out
    assert "has to pull it" not in checkout("plan", *GOOD, "-r", "good=example/bad")[1]


@pytest.mark.parametrize("image", ["me/gone:1", "example/bad"])
def test_a_plan_without_a_network_names_images_that_are_missing(checkout: Checkout, image: str) -> None:
    status, out, _ = checkout("plan", *GOOD, "-r", f"good={image}", "--images", "local")
    fault = f"good: its image {image} is not here, and --images local neither pulls nor builds images: the campaign "
    assert (status, f"{fault}would fail." in out, "has to pull" in out) == (
        *((3, True) if image == "me/gone:1" else (0, False)),
        False,
    )
    measured = checkout(*GOOD, "-r", f"good={image}", "--images", "local")[0]
    assert (measured == 3) is (status == 3)


@pytest.mark.parametrize("command", ["run", "plan"])
def test_a_lock_file_that_names_no_image_is_refused(checkout: Checkout, tmp_path: Path, command: str) -> None:
    (tmp_path / "a.lock").write_text("{}")
    status, out, err = checkout(command, *GOOD, "--locked", tmp_path / "a.lock")
    assert (status, out, checkout.engine.log) == (2, "", [])
    assert [line.partition(": ")[0] for line in err.splitlines()] == ["good", "simulator"]


def test_a_plan_checks_locked_images_if_the_engine_answers(checkout: Checkout, tmp_path: Path) -> None:
    file = tmp_path / "a.lock"
    assert checkout("images", "lock", "--lock-file", file)[0] == 0
    assert checkout("plan", *GOOD, "--locked", file)[0] == 0
    file.write_text(file.read_text().replace('"id": "good"', '"id": "sha256:1"'))
    assert "sha256:1" in checkout.refusal("plan", *GOOD, "--locked", file, status=3)
    checkout.engine.gone = True
    assert checkout("plan", *GOOD, "--locked", file)[0] == 0


def test_a_plan_checks_the_rights_of_an_engine_that_answers(
    checkout: Checkout, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = checkout.engine.info()
    monkeypatch.setattr(checkout.engine, "info", lambda: told | {"SecurityOptions": ["name=rootless"]})
    err = checkout.refusal("plan", *GOOD, status=3)
    assert "runs without root access. Such an engine measures only in virtual time" in err
    for words in (("--clock", "virtual"), ("--cluster", "tcp://localhost:1")):
        assert checkout("plan", *GOOD, *words)[0] == 0


def test_a_plan_checks_that_the_images_of_a_campaign_to_continue_are_there(checkout: Checkout) -> None:
    assert checkout(*GOOD, "--repetitions", "2")[0] == 0
    journal = checkout.results / store.JOURNAL
    lines = journal.read_text().splitlines(keepends=True)
    journal.write_text("".join(line for line in lines if '"repetition": 2' not in line))
    assert checkout("plan", "--resume", checkout.results)[0] == 0
    del checkout.engine.programs["good"]
    assert "images of the campaign are gone" in checkout.refusal("plan", "--resume", checkout.results, status=3)


def test_a_plan_tells_which_images_a_campaign_to_continue_still_lacks(checkout: Checkout) -> None:
    begun = checkout.engine.programs.pop("bad")
    assert checkout("-s", "good", "-c", "good", "bad", "-t", "tiny")[0] == 3
    status, out, _ = checkout("plan", "--resume", checkout.results)
    assert (status, "bad: its image example/bad is not here." in out) == (3, True)
    checkout.engine.programs["bad"] = begun
    assert checkout("plan", "--resume", checkout.results)[0] == 0


def test_each_set_of_further_flows_is_another_test_case(checkout: Checkout) -> None:
    status, out, err = checkout(
        "plan", *GOOD, "--repetitions", "1", "--with", "same", "good/good@2s", "--with", "same", "--all"
    )
    assert (status, err) == (0, "")
    assert "tiny~same~good_good_2s " in out
    assert "tiny~same " in out
    assert "2 runs" in out


def test_only_pairs_with_an_implementation(checkout: Checkout) -> None:
    words = ("plan", "-s", "good", "bad", "-c", "good", "bad", "-t", "tiny", "--repetitions", "1")
    assert "4 runs" in checkout(*words)[1]
    status, out, err = checkout(*words, "-i", "bad")
    assert (status, err) == (0, "")
    assert "3 runs" in out
    err = checkout.refusal(*words, "--must-include", "bad,worse")
    assert err == '"worse" has to be included, and is neither a selected server nor a selected client.\n'
    assert checkout(*words, "-i", "goood")[2].endswith(" nor a selected client. Did you mean good?\n")


def test_chosen_pairs(checkout: Checkout) -> None:
    words = ("--pairs", "good/BAD", "odd/good", "-t", "tiny", "--repetitions", "1")
    out = checkout.out("plan", *words, "--all")
    rows = [[word.strip() for word in line.split("│")[2:4]] for line in out.splitlines() if line.startswith("│ ")]
    assert rows[1:3] == [["good", "bad"], ["odd", "good"]]
    assert out.startswith("2 pairs, 1 test case, 2 runs; ")
    assert 'No client "bed". Did you mean bad?' in checkout.refusal("plan", "--pairs", "good/bed", "-t", "tiny")
    assert "good/bad: the server or" in checkout.refusal("plan", "--pairs", "good/bad", "-s", "odd", "-t", "tiny")
    assert "is no pair" in checkout.refusal("plan", "--pairs", "good", "-t", "tiny")
    assert checkout(*words)[0] == 1
    assert checkout.stored.manifest.pairs == ("good/bad", "odd/good")
    assert "All runs are finished." in checkout("plan", "--resume", checkout.results)[1]


@pytest.mark.parametrize(
    ("words", "fault"),
    [
        (("-i", ""), "--must-include: no implementation was named."),
        (("-i", " , "), "--must-include: no implementation was named."),
        (("-r", ""), "No image was named to replace another; write"),
        (("-r", "bad=x/y"), '--replace: no run uses "bad". Select it with -s or -c, or leave it out.'),
        (("-r", "GOOD=x/y,bad=x/y,odd=x/y"), '--replace: no run uses "bad" or "odd". Select it'),
        (("-c", "bad", "-i", "bad", "-r", "odd=x/y"), '--replace: no run uses "odd". Select it'),
    ],
)
@pytest.mark.parametrize("command", ["run", "plan"])
def test_words_without_an_effect(checkout: Checkout, command: str, words: tuple[str, ...], fault: str) -> None:
    assert checkout.refusal(command, *GOOD, *words).startswith(fault)


def test_an_image_may_replace_that_of_another_flow(checkout: Checkout) -> None:
    assert checkout("plan", *GOOD, "--with", "bad/bad", "-r", "bad=x/y")[0] == 0


def test_plan_takes_every_option_of_run(checkout: Checkout, tmp_path: Path) -> None:
    words = ("-l", str(tmp_path / "new"), "-j", str(tmp_path / "all.json"), "-f", "--junit", str(tmp_path / "j.xml"))
    status, out, err = checkout("plan", *GOOD, *words, "-m", "--github", "--images", "local", "--no-qlog", "--all")
    assert (status, err) == (0, "")
    assert "| # " in out
    assert "1 run; its transfers take 5.0 s at most." in out
    assert "::" not in out
    assert [each.name for each in tmp_path.iterdir()] == ["checkout"]
    runs, plans = (
        {each for action in parser_of(name)._actions for each in action.option_strings} for name in ("run", "plan")
    )
    assert plans - runs == {"--resume", "--retry", "--all"}


@pytest.mark.parametrize(
    "words",
    [
        ("-j", "no/all.json"),
        ("--expect", "no.yml"),
        ("--locked", "no.lock"),
        ("--hosts", "no.yml"),
        ("--deadline", "x"),
    ],
)
def test_a_plan_that_run_would_refuse_is_not_shown(checkout: Checkout, words: tuple[str, str]) -> None:
    assert words[1] in checkout.refusal("plan", *GOOD, *words)


def test_the_rest_of_a_campaign_is_planned_with_what_it_has_measured(checkout: Checkout, tmp_path: Path) -> None:
    place = tmp_path / "mine"
    assert checkout(*GOOD, "--repetitions", "3", "-l", place)[0] == 0
    journal = place / store.JOURNAL
    lines = journal.read_text().splitlines(keepends=True)
    journal.write_text("".join(lines[: next(at for at, line in enumerate(lines) if '"kind": "result"' in line) + 1]))
    out = checkout.out("plan", "--resume", place)
    assert "2 runs; their transfers take" in out
    assert f"1 of 3 runs of {place} are finished." in out
    assert "(from earlier runs)" in out
    assert "without earlier runs, tiny); " in checkout("plan", *GOOD)[1]


def test_runs_to_repeat_are_planned(checkout: Checkout) -> None:
    assert checkout("-s", "good", "-c", "good", "bad", "-t", "tiny", "--skip-compliance-check")[0] == 1
    words = ("plan", "--resume", str(checkout.results))
    assert "All runs are finished." in checkout(*words, "--retry", "timeout")[1]
    out = checkout.out(*words, "--retry", "failed")
    assert "1 run; its transfers take" in out
    assert f"1 of 2 runs of {checkout.results} are finished and not repeated." in out
    err = checkout.refusal("plan", *GOOD, "--retry", "failed")
    assert err == "--retry repeats runs of a campaign: add --resume DIR.\n"


def test_a_campaign_continues_with_its_own_options(checkout: Checkout) -> None:
    assert checkout(*GOOD)[0] == 0
    words = ("-s", "bogus", "--seed", "1", "-f", "-l", "elsewhere", "--locked")
    err = checkout.refusal("plan", "--resume", checkout.results, *words, "--parallel", "2", "-m")
    assert err == (
        "--resume: a campaign continues with its own options. "
        "Leave out --server, --seed, --locked, --log-dir, --save-files.\n"
    )


@pytest.mark.parametrize("command", [["resume"], ["plan", "--resume"]])
@pytest.mark.parametrize("option", ["-j", "--junit", "--comment", "--expect", "--hosts", "--require"])
def test_files_of_a_campaign_to_continue_are_checked(checkout: Checkout, command: list[str], option: str) -> None:
    assert checkout(*GOOD)[0] == 0
    assert "no/such/file" in checkout.refusal(*command, checkout.results, option, "no/such/file")


@pytest.mark.parametrize("command", [["resume"], ["plan", "--resume"]])
def test_only_a_campaign_with_its_journal_continues(checkout: Checkout, command: list[str]) -> None:
    assert checkout(*GOOD)[0] == 0
    place = checkout.results.resolve()
    for file in (store.JOURNAL, store.DOCUMENT):
        status, out, err = checkout(*command, place / file)
        assert (status, out, err) == (2, "", f"{place / file}: is a file. Name the directory of a campaign.\n")
    (place / store.JOURNAL).unlink()
    err = checkout.refusal(*command, place)
    assert f"{place}: has result.json but no journal.jsonl, so nothing can be added to its results." in err
    (place / store.DOCUMENT).unlink()
    assert "holds no results (no journal.jsonl, no result.json)" in checkout(*command, place)[2]


def test_a_cluster_needs_dask_as_for_run(checkout: Checkout, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    err = checkout.refusal("plan", *GOOD, "--cluster", "tcp://localhost:1", status=3)
    assert "Dask is not installed here: on every machine of a cluster, run `scripts/setup --cluster`" in err


@pytest.mark.parametrize("command", ["run", "plan"])
def test_hosts_and_a_cluster_exclude_each_other(checkout: Checkout, tmp_path: Path, command: str) -> None:
    (tmp_path / "hosts.yml").write_text("far: {daemon: unix:///far}")
    words = ("--hosts", str(tmp_path / "hosts.yml"), "--cluster", "tcp://localhost:1")
    assert checkout.refusal(command, *GOOD, *words).startswith("--hosts and --cluster exclude each other")


def test_a_time_limit_that_is_too_short(tmp_path: Path) -> None:
    text = "name: large\nabbreviation: LRG\ndescription: d\nextends: sat\nfile size: 25 MiB\n"
    for more, warned in (("", True), ("timeout: 10 min\n", False)):
        (tmp_path / "large.yaml").write_text(text + more)
        runs = select(parse(["-s", "quic-go", "-c", "quic-go", "-t", str(tmp_path / "large.yaml")]), ROOT).runs
        lines = list(dry_run._short_limits(runs, Durations()))
        assert [line.startswith("large: its time limit, 2 min 0 s, may be too short") for line in lines] == [
            True
        ] * warned
