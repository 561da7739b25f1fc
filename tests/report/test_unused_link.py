"""Why a transfer was slow: the phases in which the link was not used."""

import re
from dataclasses import replace

import numpy as np
import pytest

from quicsat.model.emulated_link import Direction, EmulatedLink
from quicsat.model.outcomes import Outcome
from quicsat.model.test_case import TestCase
from quicsat.report.unused_link import why_slow
from quicsat.traces.series import Samples, Series
from tests.results_builder import SAT, run_result
from tests.series_builder import Transfer, series

LINK = EmulatedLink.symmetric("simple-p2p", Direction(0.3, 8e6, 100))
CASE = replace(SAT, link=LINK)


def amounts(text: str) -> dict[str, float]:
    """Seconds by the first word of what is told of them."""
    found = re.findall(r"(?:idle for|;) ([0-9.]+) (ms|s) (\w+)", text)
    return {word: float(number) * (0.001 if unit == "ms" else 1) for number, unit, word in found}


def told(made: Series, case: TestCase = CASE) -> str:
    return why_slow(run_result(1e6), case, made)


def test_a_server_that_never_fills_the_link() -> None:
    """100,000 bytes at 1 Mbit/s take 0.79 s from the first to the last packet, of which the link needs an eighth."""
    text = told(series(Transfer()))
    found = amounts(text)
    assert found == {"until": pytest.approx(1.2, abs=0.01), "from": pytest.approx(0.79 * 7 / 8, abs=0.03)}
    assert "never had more than" in text


def test_a_server_that_fills_the_link_late_and_loses_packets() -> None:
    made = series(Transfer(size=2_000_000, lost=(1500, 1501)))
    time = np.array([0.9, 5.0, 9.0])
    made = replace(made, in_flight=Samples(time, np.array([1e4, 6e5, 2e5])))
    text = told(made)
    found = amounts(text)
    assert [*found] == ["until", "from", "after"]
    assert found["from"] == pytest.approx((5.3 - 1.2) * 7 / 8, abs=0.15)
    assert "2 lost packets" in text
    assert "585.9 KiB" in text
    assert "195.3 KiB in flight" in text


def test_nothing_is_said_of_a_run_that_was_fast_or_failed_or_whose_link_is_not_known() -> None:
    made = series(Transfer())
    assert why_slow(run_result(18e6), SAT, made) == ""
    assert why_slow(run_result(None, outcome=Outcome.FAILED), CASE, made) == ""
    assert told(made, replace(CASE, link=replace(LINK, forward=replace(LINK.forward, rate=0.0)))) == ""
