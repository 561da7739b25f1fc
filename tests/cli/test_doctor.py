"""``./run.py doctor`` prints a line per check, and a remedy for each problem."""

from __future__ import annotations

from tests.cli.conftest import Checkout


def test_doctor(checkout: Checkout) -> None:
    status, out, _ = checkout("doctor")
    assert status == 0
    assert "engine" in out
    checkout.engine.gone = True
    status, out, _ = checkout("doctor")
    assert status == 3
    assert "->" in out
