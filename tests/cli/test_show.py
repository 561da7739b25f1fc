"""``./run.py show`` shows the matrices of a stored campaign."""

from pathlib import Path

from tests.cli.conftest import GOOD, Checkout


def test_show_has_the_campaigns_exit_status(checkout: Checkout, tmp_path: Path) -> None:
    checkout("-s", "good", "-c", "bad", "-t", "tiny")
    assert checkout("show")[0] == 1
    assert checkout("show", tmp_path)[0] == 2


def test_markdown(checkout: Checkout) -> None:
    assert any(line.startswith("|") for line in checkout(*GOOD, "-m")[1].splitlines())
    assert any(line.startswith("|") for line in checkout("show", "-m")[1].splitlines())


def test_negotiated_facts(checkout: Checkout) -> None:
    checkout(*GOOD)
    assert "What endpoints negotiated" not in checkout("show")[1]
    assert "What endpoints negotiated" in checkout.out("show", "--negotiated")
