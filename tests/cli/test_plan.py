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


def test_each_set_of_further_flows_is_another_test_case(checkout: Checkout) -> None:
    status, out, err = checkout("plan", *GOOD, "--repetitions", "1", "--with", "same", "good/good@2s", "--with", "same")
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
    status, _, err = checkout(*words, "--must-include", "bad,worse")
    assert status == 2
    assert '--must-include: "worse" is neither a selected server nor a selected client.' in err
