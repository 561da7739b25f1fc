"""Options that select stored campaigns, test cases, pairs and objectives."""

import json
import re
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from quicsat.cli.exit_status import ExitStatus
from quicsat.model.perturbation import NONE, USUAL
from quicsat.results.store import DOCUMENT, load, write_result_json
from tests.cli.conftest import GOOD, Checkout, CommandLine, Draws
from tests.results_builder import result_set, runs, virtual


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (["tables", "-t", "satlos"], "Did you mean satloss?"),
        (["compare"], "A second campaign is missing"),
        (["plot", "--pair", "picoquic_quich"], "(SERVER_CLIENT). Did you mean picoquic_quiche?"),
        (["tables", "--table", "clusters"], "Select two test cases"),
    ],
)
def test_wrong_words(words: list[str], problem: str, places: list[str], quicsat: CommandLine) -> None:
    assert problem in quicsat.refusal(words[0], places[0], *words[1:], draw=Draws())


def test_a_pair_may_have_the_name_of_its_directory(tmp_path: Path, quicsat: CommandLine) -> None:
    many = [run for server in ("picoquic:bbr", "picoquic") for run in runs(5e6, server=server)]
    write_result_json(tmp_path, result_set(many, servers=("picoquic:bbr", "picoquic")))
    for name in ("picoquic+bbr_quiche", "picoquic:bbr_quiche"):
        draws = Draws()
        quicsat("plot", tmp_path, "--pair", name, draw=draws)
        assert draws.requests[0].pairs == (("picoquic:bbr", "quiche"),)
        lines = quicsat.out("tables", tmp_path, "--pair", name, "--table", "pairs", "--format", "csv").splitlines()
        assert [line.split(",")[1] for line in lines[1:]] == ["picoquic:bbr"]


def test_no_results(tmp_path: Path, quicsat: CommandLine) -> None:
    assert "holds no results" in quicsat.refusal("tables", tmp_path)


def test_the_same_directory_twice_has_two_labels(places: list[str], quicsat: CommandLine) -> None:
    draws = Draws()
    quicsat("plot", places[0], places[0], draw=draws)
    assert [campaign.label for campaign in draws.requests[0].campaigns] == ["one", "one-2"]


@pytest.mark.parametrize(
    "line",
    [
        "show DIR", "tables DIR", "compare DIR OTHER", "compare OTHER DIR", "compare --previous DIR",
        "export DIR FILE", "baseline save DIR FILE", "baseline check DIR BASELINE", "explain RUN", "plot DIR",
    ],
)  # fmt: skip
def test_each_command_names_what_it_leaves_out(
    line: str, places: list[str], tmp_path: Path, quicsat: CommandLine
) -> None:
    """A result with a goodput below 0: in ``--previous``, the only campaign, so that it is compared with none."""
    baseline, damaged = tmp_path / "baseline.json", tmp_path / "damaged"
    assert quicsat("baseline", "save", places[0], baseline)[0] == 0
    shutil.copytree(places[0], damaged / "campaign")
    file = damaged / "campaign" / DOCUMENT
    plain = json.loads(file.read_bytes())
    plain["results"][2]["measurement"]["values"]["goodput"] = -1.0
    file.write_text(json.dumps(plain))
    run = f"{damaged}/campaign/picoquic_quiche/sat/1"
    named = {"DIR": str(damaged / "campaign"), "OTHER": places[1], "FILE": str(tmp_path / "new.json"), "RUN": run}
    words = [named.get(word, word) for word in line.replace("BASELINE", str(baseline)).split()]
    status, _, err = quicsat(*words, draw=Draws())
    assert status in (0, 1, 2, 3, 5)
    assert f"campaign/{DOCUMENT}: results[2].measurement.values.goodput: " in err


# ---- clocks ---------------------------------------------------------------------------------


@pytest.mark.parametrize("command", ["compare", "tables", "plot"])
def test_results_of_different_clocks_are_never_put_together(
    command: str, places: list[str], other_clock: str, quicsat: CommandLine
) -> None:
    draws = Draws()
    status, out, err = quicsat(command, places[0], other_clock, draw=draws)
    assert status == 2
    assert err.strip() == (
        "Results of different clocks are never put together: one ran in real time, "
        "virtual ran in virtual time (3 µs per system call)."
    )
    assert (out, draws.requests) == ("", [])


def test_campaigns_with_other_amplitudes_are_told_apart(tmp_path: Path, quicsat: CommandLine) -> None:
    """Their clock is the same; one of them says that it has no perturbations."""
    places = list[Path]()
    for name, amplitudes in (("a", USUAL), ("b", NONE)):
        made = virtual(result_set(runs(8e6), repetitions=1))
        places.append(tmp_path / name)
        places[-1].mkdir()
        write_result_json(places[-1], replace(made, manifest=replace(made.manifest, amplitudes=amplitudes)))
    for words in (places, places[::-1]):
        told = quicsat.refusal("compare", *words)
        assert "different clocks" not in told
        assert "b ran in virtual time" in told
        assert told.count("not perturbed") == 1
    quicsat.out("baseline", "save", places[0], tmp_path / "base.json")
    assert quicsat.err("baseline", "check", places[1], tmp_path / "base.json", status=2).count("not perturbed") == 1


@pytest.mark.parametrize("form", ["qir", "qir-se"])
def test_an_export_keeps_its_clock(
    form: str, places: list[str], other_clock: str, tmp_path: Path, quicsat: CommandLine
) -> None:
    file = str(tmp_path / "theirs.json")
    assert quicsat("export", other_clock, file, "--format", form)[0] == 0
    assert "theirs ran in virtual time (3 µs per system call)." in quicsat.refusal("tables", places[0], file)
    undecided = form == "qir"  # which has no seeds, by which runs in virtual time are compared
    assert quicsat("compare", file, other_clock)[0] == (ExitStatus.UNDECIDED if undecided else ExitStatus.SUCCESS)
    assert quicsat("compare", places[0], file)[0] == 2


def test_a_cost_makes_another_clock(other_clock: str, tmp_path: Path, quicsat: CommandLine) -> None:
    results = load(Path(other_clock)).result_set
    (tmp_path / "slower").mkdir()
    manifest = replace(results.manifest, id="slower", cpu_cost=5e-6)
    write_result_json(tmp_path / "slower", replace(results, manifest=manifest))
    err = quicsat.refusal("compare", other_clock, tmp_path / "slower")
    assert "slower ran in virtual time (5 µs per system call)" in err


def test_results_of_one_clock_are_compared(other_clock: str, tmp_path: Path, quicsat: CommandLine) -> None:
    results = load(Path(other_clock)).result_set
    (tmp_path / "again").mkdir()
    write_result_json(tmp_path / "again", replace(results, manifest=replace(results.manifest, id="again")))
    assert "virtual → again" in quicsat.out("compare", other_clock, tmp_path / "again")


# ---- campaigns that cannot be read ----------------------------------------------------------


@pytest.mark.parametrize("first", [True, False])
@pytest.mark.parametrize("command", ["tables", "plot"])
def test_a_campaign_that_cannot_be_read_is_named_and_left_out(
    command: str, first: bool, places: list[str], tmp_path: Path, quicsat: CommandLine
) -> None:
    broken = tmp_path / "broken"
    broken.mkdir()
    (broken / "result.json").write_text('{"schema_version": ' + "[" * 100_000)
    words = [str(broken), places[0]] if first else [places[0], str(broken)]
    draws = Draws()
    status, out, err = quicsat(command, *words, draw=draws)
    assert status == 0
    assert f"{broken}/result.json: " in err
    if command == "plot":
        assert [campaign.label for campaign in draws.requests[0].campaigns] == ["one"]
    else:
        assert "SAT" in out
    assert not [path for path in broken.iterdir() if path.name != "result.json"]
    assert quicsat("compare", *words)[0] == 2
    assert quicsat(command, tmp_path / "nothing", places[0], draw=draws)[0] == 2


@pytest.mark.parametrize("name", ["a\nb\x1b[2J", "\u202ex\u2028y\x85", "\x1b]0;title\x07"])
def test_the_name_of_a_directory_controls_no_terminal(checkout: Checkout, tmp_path: Path, name: str) -> None:
    place = tmp_path / name
    assert checkout(*GOOD, "-l", place)[0] == 0
    for words in (
        ("analyse", place), ("explain", f"{place}/good_good/tiny/1"), ("merge", place, "-o", tmp_path / f"whole{name}"),
        ("prune", place, "--traces", "0"), ("show", place), ("baseline", "save", place, tmp_path / f"{name}.json"),
    ):  # fmt: skip
        _, out, err = checkout(*words)
        said = re.sub(r"\x1b\[[0-9;]*m", "", out + err)
        assert all(line.isprintable() for line in said.split("\n")), words
        assert not any(line.startswith("b\\x1b") for line in said.split("\n")), words
