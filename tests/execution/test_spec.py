"""From when to when a container ran, as an engine tells it."""

from __future__ import annotations

import pytest

from interop.execution.spec import life
from interop.model import Interval

BEGIN, END = "2026-11-22T19:00:01.25Z", "2026-11-22T19:00:03.500000001Z"
NEVER = "0001-01-01T00:00:00Z"


def test_times_of_a_container_that_has_ended() -> None:
    found = life({"StartedAt": BEGIN, "FinishedAt": END, "Running": False})
    assert found == Interval(1795374001.25, 1795374003.5)


def test_times_in_another_zone() -> None:
    assert life({"StartedAt": BEGIN, "FinishedAt": "2026-11-22T21:00:03.5+02:00"}) == life(
        {"StartedAt": BEGIN, "FinishedAt": END}
    )


def test_a_container_that_ends_at_once_may_have_its_end_noted_first() -> None:
    state = {"StartedAt": "2026-11-22T19:00:01.254Z", "FinishedAt": BEGIN}
    assert life(state) == Interval(1795374001.25, 1795374001.254)


@pytest.mark.parametrize(
    "state",
    [
        {},
        {"StartedAt": BEGIN},
        {"StartedAt": NEVER, "FinishedAt": NEVER},
        {"StartedAt": BEGIN, "FinishedAt": NEVER},
        {"StartedAt": END, "FinishedAt": BEGIN},
        {"StartedAt": BEGIN, "FinishedAt": ""},
        {"StartedAt": BEGIN, "FinishedAt": "2026-11-22T19:00:03.5"},
        {"StartedAt": None, "FinishedAt": 3},
    ],
)
def test_times_that_are_not_told(state: dict[str, object]) -> None:
    assert life(state) is None
