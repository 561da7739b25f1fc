"""``./run.py doctor`` prints a line per check, and a remedy for each problem."""

from tests.cli.conftest import Checkout


def test_doctor(checkout: Checkout) -> None:
    few, everything = checkout.out("doctor"), checkout.out("doctor", "--all")
    assert "ok    engine: " in everything
    assert "ok  " not in few
    assert "found nothing to do; --all lists them." in few
    checkout.engine.gone = True
    assert "->" in checkout.out("doctor", status=3)
