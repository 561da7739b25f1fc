"""The numbers of made-up series are those of pencil and paper."""

from dataclasses import replace

import numpy as np
import pytest

from quicsat.analysis.metrics import METRICS
from quicsat.analysis.series_metrics import SHARES, gilbert, longest_burst, sending_times
from quicsat.analysis.series_metrics import series_metrics as all_metrics
from quicsat.traces.series import Packets, Samples, Series, StreamData
from tests.series_builder import HEAD, Transfer, series

RATE = 20e6
"""Of the link, bit/s."""


def series_metrics(made: Series) -> dict[str, float]:
    return all_metrics(made, RATE)


def test_all_numbers_are_metrics() -> None:
    known = {metric.name for metric in METRICS}
    found = series_metrics(series(Transfer(size=12_000_000, rate=2e7, lost=[100])))
    assert found.keys() <= known
    assert {"time_to_2_mb", "time_to_10_mb", "steady_rate", "startup_time", "gilbert_gg"} <= found.keys()
    assert "time_to_100_mb" not in found


def test_a_transfer_with_two_losses() -> None:
    found = series_metrics(series(Transfer(size=100_000, lost=[3, 7])))
    assert found["retransmitted"] == pytest.approx(2000 / 102_000)
    assert found["spurious"] == 0
    assert found["rtt_median"] == pytest.approx(0.6)
    assert found["queueing_delay_95"] == pytest.approx(0, abs=1e-9)
    assert found["initial_window"] == pytest.approx(0.9 * 0.6 * 1e6 / 8, rel=0.02)
    assert found["return_packets"] == pytest.approx(102 / 100)
    assert found["return_bytes"] == pytest.approx((1200 + 60 + 100 * HEAD) / 100_000)
    assert found["rtt_inflation"] == pytest.approx(1)
    assert found["spin_rtt"] == pytest.approx(0.601)
    assert found["spin_rtt_error"] == pytest.approx(0.001 / 0.6)
    assert "steady_rate" not in found  # too short


def test_sending_times_are_those_of_equal_shares_of_new_bytes() -> None:
    made = series(Transfer(size=100_000, piece=1000, lost=[3, 7]))
    times = sending_times(made)
    assert len(times) == SHARES + 1
    assert times[0] == 0.9
    assert times[1] == pytest.approx(0.9 + 3 * 0.008)  # with the fourth of 100 packets, 4 % have been sent
    assert times[-1] == pytest.approx(0.9 + 99 * 0.008)  # what is sent again does not count


def test_without_a_response_there_are_no_sending_times() -> None:
    made = series(Transfer())
    assert sending_times(replace(made, sent=StreamData(*(column[:0] for column in vars(made.sent).values())))) == ()


def test_time_to_a_mark_counts_from_the_clients_first_packet() -> None:
    found = series_metrics(series(Transfer(size=3_000_000, rate=8e6, delay=0.1)))
    assert found["time_to_2_mb"] == pytest.approx(0.4 + 1.999, abs=0.002)
    assert found["steady_rate"] == pytest.approx(8e6, rel=0.01)
    assert found["rate_10"] == pytest.approx(found["rate_median"], rel=0.02)
    assert found["startup_time"] == 0


def with_(base: Series, **changes: object) -> Series:
    return replace(base, **changes)  # type: ignore[arg-type]


def test_bytes_that_arrived_twice_are_spurious() -> None:
    data = StreamData.of(time=[1, 2], stream=[0, 0], offset=[0, 0], length=[100, 100], number=[1, 2], new=[100, 0],
                         connection=[0, 0])  # fmt: skip
    assert series_metrics(with_(series(), arrived=data))["spurious"] == 0.5


def packets(arrived: list[float], lost: list[bool] | None = None) -> Packets:
    count = len(arrived)
    return Packets.of(
        sent=range(count),
        arrived=arrived,
        lost=lost or [False] * count,
        number=range(count),
        size=[1] * count,
        connection=[0] * count,
    )


def test_reordered_packets_are_those_that_were_overtaken() -> None:
    assert series_metrics(with_(series(), forward=packets([12, 10, 11, 13])))["reordered_forward"] == 0.25
    assert series_metrics(with_(series(), back=packets([10, 11, np.nan, 13])))["reordered_return"] == 0


def test_queueing_delay_and_bursts() -> None:
    found = series_metrics(with_(series(), forward=packets([0.5, 1.5, 2.5, 4.5])))
    assert (found["queueing_delay_median"], found["longest_burst"]) == (0, 1)
    assert found["queueing_delay_95"] == pytest.approx(0.85)


def paced(*gaps: float, size: int = 1200) -> Packets:
    """Packets with these times between them, in units of the time that one takes on the link of 20 Mbit/s."""
    times = np.cumsum([0.0, *gaps]) * 8 * size / RATE
    count = len(times)
    return Packets.of(
        sent=times, arrived=times + 0.1, lost=[False] * count, number=range(count), size=[size] * count,
        connection=[0] * count,
    )  # fmt: skip


@pytest.mark.parametrize("size", [1200, 300])
@pytest.mark.parametrize("flight", [319, 1000])
@pytest.mark.parametrize("pace", [2.0, 1.0, 0.8, 0.55, 0.45, 1 / 2.77])
def test_paced_packets_are_no_burst_whatever_their_rate(pace: float, flight: int, size: int) -> None:
    """Half as fast as the link, at its rate, 1.25 times as fast, nearly twice; then faster, as BBR starts up.

    319 packets at 2.77 times the rate take 55 ms: less than a round trip over a satellite.
    """
    assert longest_burst(paced(*[pace] * (flight - 1), size=size), RATE) == 1
    flights = [gap for _ in range(10) for gap in (*[pace] * (flight - 1), 1000.0)]
    assert longest_burst(paced(*flights, size=size), RATE) == 1


@pytest.mark.parametrize("pace", [0.1, 0.01, 0.0])
@pytest.mark.parametrize("window", [10, 200])
def test_a_window_sent_back_to_back_each_round_trip_is_a_burst(pace: float, window: int) -> None:
    flights = [gap for _ in range(10) for gap in (*[pace] * (window - 1), 300.0)]
    assert longest_burst(paced(*flights), RATE) == window


def test_what_is_paced_after_a_burst_does_not_belong_to_it() -> None:
    """As BBR after an initial window that was not paced."""
    assert longest_burst(paced(*[0.01] * 9, *[1 / 2.77] * 200), RATE) == 10


def test_a_short_pause_does_not_end_a_burst() -> None:
    """A server that is held up for a moment, for less time than a link four times as fast needs for the packets."""
    assert longest_burst(paced(*[0.01] * 40, 5.0, *[0.01] * 40), RATE) == 82
    assert longest_burst(paced(*[0.01] * 40, 11.0, *[0.01] * 40), RATE) == 41


def test_packets_that_a_slow_sender_sends_close_together_are_no_burst_if_the_link_drains_them() -> None:
    assert longest_burst(paced(*[0.6, 0.6, 50] * 20), RATE) == 1


def test_the_rate_of_the_link_says_what_a_burst_is() -> None:
    made = paced(*[0.1] * 99)
    assert [longest_burst(made, rate) for rate in (RATE, 2 * RATE, 3 * RATE)] == [100, 100, 1]


def test_the_longest_of_several_bursts() -> None:
    assert longest_burst(paced(1, 0.01, 0.01, 1, 1, 0.01, 0.01, 0.01, 2, 0.01), RATE) == 4
    assert longest_burst(paced(), RATE) == 1
    assert longest_burst(Packets.of(), RATE) is None
    assert longest_burst(paced(1, 1), 0.0) is None
    made = series(Transfer(size=100_000))
    assert series_metrics(made)["longest_burst"] == longest_burst(made.forward, RATE)


def test_a_small_packet_before_a_large_one_takes_little_time() -> None:
    """An acknowledgement of 40 bytes takes 16 µs at 20 Mbit/s, so that 0.1 ms behind it is no burst."""
    made = Packets.of(
        sent=[0, 1e-4, 2e-4], arrived=[1, 1, 1], lost=[False] * 3, number=range(3), size=[40, 1200, 1200],
        connection=[0] * 3,
    )  # fmt: skip
    assert longest_burst(made, RATE) == 2


# ---- start-up --------------------------------------------------------------------------------


def received(*phases: tuple[float, float]) -> dict[str, float]:
    """Metrics of a response in packets of 1000 bytes: so many seconds, at so many Mbit/s, and so on."""
    times, begin = list[float](), 0.0
    for duration, rate in phases:
        count = round(duration * rate * 125)
        times += [begin + (n + 0.5) * duration / count for n in range(count)]
        begin += duration
    rows = np.arange(len(times))
    sizes = np.full(len(times), 1000)
    data = StreamData(np.array(times), 0 * rows, 1000 * rows, sizes, rows, sizes, 0 * rows)
    return series_metrics(with_(series(), arrived=data))


def test_a_transfer_that_is_steady_at_once_has_no_start_up() -> None:
    assert received((10, 8))["startup_time"] == 0


def test_start_up_ends_where_the_rate_changes() -> None:
    assert received((3, 1), (10, 8))["startup_time"] == pytest.approx(3, abs=0.01)
    slow_start = [(0.6, 0.2 * 2**n) for n in range(6)]
    assert received(*slow_start, (10, 10))["startup_time"] == pytest.approx(3.6, abs=0.03)


def test_a_rate_that_is_not_kept_does_not_end_the_start_up() -> None:
    """438 s: the first second is fast, then the rate is low for long; as after an early loss."""
    assert received((1, 0.9), (340, 0.1), (97, 1))["startup_time"] == pytest.approx(341, abs=0.1)
    assert received((1, 15), (437, 0.2))["startup_time"] == 0  # low is all that it can


def test_a_saw_tooth_is_steady() -> None:
    teeth = [(1.0, 2 + 0.2 * step) for _ in range(10) for step in range(10)]
    assert received((2, 0.5), *teeth)["startup_time"] == pytest.approx(2, abs=6)


def test_a_transfer_that_ends_soon_after_it_has_become_fast_is_never_steady() -> None:
    assert "startup_time" not in received((2, 0.5), (0.8, 20))
    assert "startup_time" in received((2, 0.5), (1.1, 20))


def test_gilbert_parameters() -> None:
    fates = "ggbbgbggg?"
    arrived = [np.nan if fate != "g" else 99.0 for fate in fates]
    found = gilbert(packets(arrived, [fate == "b" for fate in fates]).judged)
    assert found == {"gg": 3 / 5, "bg": 2 / 5, "bb": 1 / 3, "gb": 2 / 3, "longest_burst": 2}
    assert gilbert(packets([]).judged) == dict.fromkeys(found)


def test_empty_series_have_no_numbers() -> None:
    base, nothing = series(), Samples.of()
    empty = with_(
        base, sent=StreamData.of(), arrived=StreamData.of(), forward=Packets.of(), back=Packets.of(), rtt=nothing,
        in_flight=nothing, clock=replace(base.clock, uncertainty=float("inf")),
    )  # fmt: skip
    assert series_metrics(empty) == {}
