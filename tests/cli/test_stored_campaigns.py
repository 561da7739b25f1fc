"""Options that select stored campaigns, test cases, pairs and objectives."""

from __future__ import annotations

from pathlib import Path

import pytest

from interop.cli.main import main
from tests.cli.conftest import ROOT, Draws


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (["tables", "-t", "satlos"], "Did you mean satloss?"),
        (["compare"], "Select two test cases"),
        (["plot", "--pair", "picoquic_quich"], "(SERVER_CLIENT). Did you mean picoquic_quiche?"),
        (["tables", "--table", "clusters"], "Select two test cases"),
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
    assert [campaign.label for campaign in draws.requests[0].campaigns] == ["one", "one-2"]
