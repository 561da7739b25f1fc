"""``./run.py plan`` shows runs, images, duration and disk space, and changes nothing."""

from __future__ import annotations

from tests.cli.conftest import Checkout

GOOD = ("-s", "good", "-c", "good", "-t", "tiny")


def test_plan_touches_nothing(checkout: Checkout) -> None:
    checkout.engine.gone = True
    status, out, err = checkout("plan", *GOOD, "--repetitions", "3")
    assert (status, err) == (0, "")
    assert out.count("good") >= 2
    assert not (checkout.root / "results").exists()


def test_a_plan_shows_all_and_touches_nothing(checkout: Checkout) -> None:
    words = ("--shuffle", "--seed", "5", "--deadline", "06:00", "--pause", "01:00-02:00", "--breaker", "3")
    status, out, _ = checkout("plan", *GOOD, "--repetitions", "2", *words)
    assert status == 0
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
    status, out, _ = checkout("plan", *GOOD)
    assert status == 0
    assert "Images: unknown. No Docker daemon answers" in out
