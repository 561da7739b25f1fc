"""``tables``, ``plot`` and ``compare`` from the command line, over results on disk."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from interop.cli import main
from interop.pictures import Gallery, Wish
from interop.store import write_result_json
from tests.results_builder import SAT, SATLOSS, result_set, runs

ROOT = Path(__file__).resolve().parent.parent
FAST = [10e6 + 1e5 * number for number in range(10)]
SLOW = [6e6 + 1e5 * number for number in range(10)]


@pytest.fixture
def places(tmp_path: Path) -> list[str]:
    """Two campaigns, the second one slower in sat."""
    found = []
    for name, rates in (("one", FAST), ("two", SLOW)):
        (tmp_path / name).mkdir()
        results = [*runs(*rates), *runs(*(rate / 4 for rate in FAST), test_case="satloss")]
        write_result_json(tmp_path / name, result_set(results, test_cases=(SAT, SATLOSS)))
        found.append(str(tmp_path / name))
    return found


class Draws:
    """Remembers what was wished for."""

    def __init__(self) -> None:
        self.wishes: list[Wish] = []

    def __call__(self, wish: Wish) -> Gallery:
        self.wishes.append(wish)
        return Gallery((wish.target / "a.svg",), skipped=("swarm: nothing.",))


def test_summary_is_the_default_table(places: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(ROOT, ["tables", places[0]]) == 0
    assert "10.45" in capsys.readouterr().out


def test_tables_in_csv(places: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(ROOT, ["tables", places[0], "--table", "pairs", "--format", "csv", "-t", "SATL"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[1].startswith("SATL,picoquic,quiche,succeeded,2612500.0,")
    assert len(lines) == 2


def test_several_campaigns_are_shown_over_time(places: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(ROOT, ["tables", *places]) == 0
    assert "2 campaigns" in capsys.readouterr().out


@pytest.mark.parametrize("table", ["congestion", "implementations", "variance", "clusters"])
def test_every_table_can_be_had(table: str, places: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(ROOT, ["tables", places[0], "--table", table, "-t", "SAT", "SATL"]) == 0
    assert capsys.readouterr().out


def test_pairs_without_a_number_are_counted_even_if_their_server_has_none(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    names = ("a", "b", "c")
    rates = {"a": 1e6, "b": 2e6, "c": None}
    results = [
        run
        for server, rate in rates.items()
        for number, client in enumerate(names)
        for run in runs(rate and rate + number**2 * 1e5, server=server, client=client)
    ]
    write_result_json(tmp_path, result_set(results, servers=names, clients=names))
    assert main(ROOT, ["tables", str(tmp_path), "--table", "variance", "implementations"]) == 0
    told = " ".join(capsys.readouterr().out.split())
    assert "SAT: 3 pairs have no successful repetition" in told
    assert "with one repetition, over further partners for the seed of this repetition alone" in told


def test_compare_finds_what_got_worse(places: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(ROOT, ["compare", *places]) == 1
    out = capsys.readouterr().out
    assert "one → two" in out
    assert "slower" in out
    assert main(ROOT, ["compare", places[1], places[0]]) == 0
    assert "faster" in capsys.readouterr().out


def test_compare_two_links(places: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(ROOT, ["compare", places[0], "-t", "sat", "satloss"]) == 0
    assert "-75.0" in capsys.readouterr().out


def test_compare_draws_too(places: list[str], tmp_path: Path) -> None:
    draws = Draws()
    main(ROOT, ["compare", *places, "--plot", str(tmp_path / "out")], draws)
    [wish] = draws.wishes
    assert (wish.plots, wish.target) == (("comparison",), tmp_path / "out")


def test_plot_hands_over_all_that_was_asked(places: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    draws = Draws()
    command = ["plot", places[0], "-p", "offset", "cdf", "--format", "png", "svg", "-t", "SAT", "--pair",
               "picoquic_quiche", "--own-scale", "--without-failed", "--overlay"]  # fmt: skip
    assert main(ROOT, command, draws) == 0
    [wish] = draws.wishes
    assert wish.target == Path(places[0]) / "plots"
    assert wish.plots == ("offset", "cdf")
    assert wish.formats == ("png", "svg")
    assert wish.pairs == (("picoquic", "quiche"),)
    assert (wish.own_scale, wish.without_failed, wish.overlaid, wish.ideal) == (True, True, True, True)
    assert [campaign.label for campaign in wish.campaigns] == ["one"]
    told = capsys.readouterr()
    assert told.out.strip().endswith("a.svg")
    assert "not drawn: swarm: nothing." in told.err


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (["tables", "-t", "satlos"], "Did you mean satloss?"),
        (["compare"], "Two test cases are needed"),
        (["plot", "--pair", "picoquic_quich"], "written SERVER_CLIENT. Did you mean picoquic_quiche?"),
        (["tables", "--table", "clusters"], "Two test cases are needed"),
    ],
)
def test_wrong_words(words: list[str], problem: str, places: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(ROOT, [words[0], places[0], *words[1:]], Draws()) == 2
    assert problem in capsys.readouterr().err


def test_no_results(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(ROOT, ["tables", str(tmp_path)]) == 2
    assert "holds no results" in capsys.readouterr().err


def test_the_same_directory_twice_has_two_labels(places: list[str]) -> None:
    draws = Draws()
    main(ROOT, ["plot", places[0], places[0]], draws)
    assert [campaign.label for campaign in draws.wishes[0].campaigns] == ["one", "one-2"]


def test_campaigns_without_a_test_case_in_common_are_not_compared(
    places: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = replace(SAT, name="other", abbreviation="O")
    place = tmp_path / "other"
    place.mkdir()
    write_result_json(place, result_set(test_cases=(other,)))
    assert main(ROOT, ["compare", places[0], str(place)], Draws()) == 2
    assert "one and other have no test case in common" in capsys.readouterr().err
