"""``./run.py compare``: two campaigns, or two test cases of one."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from interop.cli.main import main
from interop.results.store import write_result_json
from tests.cli.conftest import ROOT, Draws
from tests.results_builder import SAT, result_set, runs, virtual


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
    [plot_request] = draws.requests
    assert (plot_request.plots, plot_request.target) == (("comparison",), tmp_path / "out")


def test_campaigns_without_a_test_case_in_common_are_not_compared(
    places: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = replace(SAT, name="other", abbreviation="O")
    place = tmp_path / "other"
    place.mkdir()
    write_result_json(place, result_set(test_cases=(other,)))
    assert main(ROOT, ["compare", places[0], str(place)], Draws()) == 2
    assert "one and other have no test case in common" in capsys.readouterr().err


def test_in_virtual_time_one_repetition_shows_a_change_of_1_percent(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    places = []
    for name, goodput in (("before", 8e6), ("after", 7.91e6), ("later", 7.91e6)):
        place = tmp_path / name
        place.mkdir()
        write_result_json(place, virtual(result_set(runs(goodput))))
        places.append(str(place))
    assert main(ROOT, ["compare", *places[:2]], Draws()) == 1
    assert "slower" in capsys.readouterr().out
    assert main(ROOT, ["compare", places[1], places[0]], Draws()) == 0
    assert "faster" in capsys.readouterr().out
    assert main(ROOT, ["compare", *places[1:]], Draws()) == 0
    assert "1 no change shown" in capsys.readouterr().out
