"""What templates show: durations, intervals, web addresses."""

import pytest

from quicsat.analysis.metrics import METRICS
from quicsat.site.pages import duration, ends, number, web_address
from quicsat.statistics.intervals import of_repetitions


@pytest.mark.parametrize(
    ("time", "text"), [(0, "–"), (42.4, "42 s"), (754, "13 min"), (3600, "1 h 0 min"), (7300, "2 h 2 min")]
)
def test_durations_are_as_exact_as_a_reader_wants(time: float, text: str) -> None:
    assert duration(time) == text


@pytest.mark.parametrize(
    ("name", "value", "text"), [("in_flight_max", 963_000.0, "940.4 KiB"), ("initial_window", 1e3, "1000 B")]
)
def test_sizes_have_a_unit_and_no_exponent(name: str, value: float, text: str) -> None:
    assert number(next(metric for metric in METRICS if metric.name == name), value) == text


@pytest.mark.parametrize(
    ("name", "numbers", "text"),
    [
        ("goodput", [7.9e6, 8.1e6, 8e6], "range of n = 3: 7.90 Mbit/s to 8.10 Mbit/s"),
        ("goodput", [7.9e6, 8.1e6] * 8, "7.94 Mbit/s to 8.05 Mbit/s"),
        ("goodput", [8e6, 8.0001e6] * 8, "8.00 Mbit/s at both ends"),
        ("rtt_median", [0.6123456789, 0.6123456799] * 8, "612.3 ms at both ends"),
        ("sent_per_useful_byte", [1.2345678901, 1.2345678902] * 8, "1.23 at both ends"),
        ("goodput", [8e6], "no interval: n = 1"),
        ("goodput", [8e6, 8e6], "no interval: no spread"),
    ],
)
def test_ends_of_intervals_are_as_round_as_other_numbers(name: str, numbers: list[float], text: str) -> None:
    [metric] = [each for each in METRICS if each.name == name]
    mean = of_repetitions(numbers)
    assert mean
    assert ends(metric, mean) == text


@pytest.mark.parametrize("text", ["javascript:alert(1)", "http://a b", "ftp://a.example", 'https://a.example/"'])
def test_what_is_no_plain_web_address_becomes_no_link(text: str) -> None:
    assert web_address(text) == ""
    assert web_address("https://a.example/b") == "https://a.example/b"
