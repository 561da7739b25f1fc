"""What the bench of variants makes of what servers sent."""

import json
from pathlib import Path

import numpy as np
import pytest

from bench.variants import KEPT, WORDS, Sent, distance, effects, names_of, read_qlog
from quicsat.config import loader

ROOT = Path(__file__).resolve().parents[2]


def test_variants_of_servers_that_one_connection_shows() -> None:
    known = loader.load_implementations(ROOT / "implementations.json")
    names = names_of(known["picoquic"])
    assert names[0] == "picoquic"
    assert "picoquic:cubic" in names
    assert not {"picoquic:bdp", "picoquic:window-1m"} & set(names)
    assert names_of(known["quic-go"]) == []


def test_distance_is_the_mean_difference_of_what_was_sent() -> None:
    assert distance(np.array([0.0, 50, 100]), np.array([0.0, 50, 100])) == 0
    assert distance(np.array([0.0, 100, 100, 100]), np.array([0.0, 50, 100, 100])) == pytest.approx(0.125)
    assert distance(np.array([100.0]), np.array([0.0, 0, 100])) == pytest.approx(2 / 3)


@pytest.mark.parametrize(
    ("other", "shown"), [((1.0, 1.0), False), ((1.01, 1.02), False), ((2.0, 2.05), True), ((2.0, 4.0), False)]
)
def test_an_effect_is_what_chance_does_not_explain(other: tuple[float, float], shown: bool) -> None:
    runs = {"a:one": [run(1.0), run(1.01)], "a:two": [run(each) for each in other], "a": [run(1.0)] * 2}
    one, two, plain = effects(runs)
    assert (one.alike, two.alike) == (((), ()) if shown else (("a:two",), ("a:one",)))
    assert (one.nearest, plain.nearest, plain.told_by["a:one"]) == ("a:two", "a:one", "")
    assert effects({"a:one": [run(1), run(1)], "a": [run(1), run(1)]})[0].nearest == "a:one"


@pytest.mark.parametrize(
    ("windows", "words", "by"),
    [
        ((0.5, 0.5), ("x", "x"), KEPT),
        ((0.5, 0.69), ("x", "x"), ""),
        ((0.5, 0.69), ("y", "y x"), WORDS),
        ((0.7, 0.7), ("y", "x"), ""),
        ((0.7, 0.7), ("x y", "y"), WORDS),
        ((0.5, None), ("x", "x"), ""),
        ((None, None), ("x", "x"), KEPT),
        ((0.5, 0.4), ("x", "x"), KEPT),
        ((0.5, 0.2), ("x", "x"), ""),
    ],
)
def test_what_is_sent_alike_may_be_told_by_the_qlog(
    windows: tuple[float | None, float | None], words: tuple[str, str], by: str
) -> None:
    """By what is kept of the window in all runs, or by what one says in all runs and the other in none."""
    cubic = [run(1.0, 0.7, "x")] * 2
    other = [run(1.0, *each) for each in zip(windows, words, strict=True)]
    for effect in effects({"a:cubic": cubic, "a:other": other}):
        assert set(effect.told_by.values()) == {by}


def test_a_qlog_tells_reductions_states_and_who_speaks(tmp_path: Path) -> None:
    events: list[tuple[str, str, dict[str, object]]] = [
        ("recovery", "metrics_updated", {"cwnd": 1000}),
        ("recovery", "metrics_updated", {"cwnd": 950}),
        ("recovery", "congestion_state_updated", {"old": "0", "new": "2"}),
        ("recovery", "congestion_state_updated", {"old": "slow_start", "new": "recovery"}),
        ("recovery", "metrics_updated", {"cwnd": 475}),
        ("info", "message", {"message": "Prague: 1,2"}),
        ("info", "message", {"message": "no more tickets: 1"}),
    ]
    fields = ["relative_time", "category", "event", "data"]
    trace = {"event_fields": fields, "events": [[time, *event] for time, event in enumerate(events)]}
    (tmp_path / "a.qlog").write_text(json.dumps({"traces": [trace]}))
    assert read_qlog([tmp_path / "a.qlog"]) == ((0.5,), ("recovery", "Prague"))
    assert read_qlog([]) == ((), ())


def run(seconds: float, kept: float | None = None, words: str = "") -> Sent:
    """A server that sends at one rate."""
    curve = np.minimum(np.arange(0, 10, 0.05) / seconds, 1) * 5e6
    return Sent(seconds, curve, () if kept is None else (kept,), tuple(words.split()))
