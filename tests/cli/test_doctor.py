"""``./run.py doctor`` prints a line per check, and a remedy for each problem."""

from __future__ import annotations

from tests.cli.conftest import Checkout


def test_doctor(checkout: Checkout) -> None:
    assert "engine" in checkout.out("doctor")
    checkout.engine.gone = True
    assert "->" in checkout.out("doctor", status=3)
