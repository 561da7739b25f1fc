"""The stored report docs/paper: formulas of Reno and CUBIC beside the measurements."""

from __future__ import annotations

import math
from collections.abc import Callable
from statistics import fmean, median

import pytest

from tests.scripts.stored_paper_report.stored import (
    Run,
    all_goodputs,
    by_client,
    listed,
    matching,
    matrix,
    metric,
    payloads,
    rows,
    runs_of,
    section_of,
    succeeded,
    the_page,
)


def test_what_slow_start_allows() -> None:
    """Windows of 10, 20, … packets of 1,502 bytes, one in each round trip, and then the rest at 20 Mbit/s.

    Of each packet, 1,500 bytes are IP, and 28 of IPv4 and UDP and 25 of QUIC are not of the file.
    """
    packets, whole = math.ceil(10 * 2**20 / 1447), 8 * 10 * 2**20
    on_link = 1502 * 8 / 20e6
    over_sat = whole / (7 * 0.6 + (packets - 10 * (2**7 - 1)) * on_link) / 1e6
    terrestrial = whole / (3 * 0.03 + (packets - 10 * (2**3 - 1)) * on_link) / 1e6
    starts = [
        median(value for run in matrix() if run["server"] == name and run["test_case"] == "sat"
               if (value := metric(run, "initial_window")) is not None)
        for name in {run["server"] for run in matrix()}
    ]  # fmt: skip
    assert (
        " With 1,447 bytes of the file in each packet (the largest UDP payload of 1,472 bytes minus about 25 bytes of "
        f"QUIC headers), it would reach {terrestrial:.1f} Mbit/s ({5 * terrestrial:.0f} %) over `terrestrial` and "
        f"{over_sat:.1f} Mbit/s ({5 * over_sat:.0f} %) over `sat`, from the first to the last byte of the file. With "
        "the median time without bytes of the file that our goodput also includes (see [Method](#method)), it would "
        f"reach {with_idle_time('terrestrial', terrestrial):.1f} Mbit/s over `terrestrial` and "
        f"{with_idle_time('sat', over_sat):.1f} Mbit/s over `sat`. In the first round trip, "
        f"{sum(start > 14720 for start in starts)} servers send more than 14,720 bytes of the response."
    ) in the_page()


def with_idle_time(test_case: str, rate: float) -> float:
    """Mbit/s of a sender whose time includes the median difference of the times of both goodputs."""
    whole = 8 * 10 * 2**20
    times = [
        whole / all_of_it - whole / stream
        for run in matching(matrix(), test_case=test_case)
        if (all_of_it := metric(run, "goodput")) and (stream := metric(run, "stream_goodput"))
    ]
    return whole / (whole / rate + 1e6 * median(times))


FORMULAS = "Formulas and measurements over satloss"
TRIP = 0.6
"""Seconds."""


def formula(server: str, control: str, loss: float) -> float:
    """Mbit/s of Reno, which keeps half of its window after a loss and quic-go's 70 %, of CUBIC, or of two packets."""
    per_trip = 8 * payloads(server) / TRIP / 1e6
    reno = per_trip * math.sqrt((1.7 / 0.3 / 2 if server == "quic-go" else 1.5) / loss)
    cubic = per_trip * 1.0538 * (TRIP / loss) ** 0.75
    least = 8 * 2 * 65527 / TRIP / 1e6 if server == "nginx" else 0.0
    return max(reno, least, cubic if control == "CUBIC" else 0.0)


def over_satloss(server: str) -> list[Run]:
    return matching(matrix(), test_case="satloss", server=server)


def share_of_drops(server: str) -> float:
    """By the link and its queue."""
    links = [run["evidence"]["simulator"]["forward"] for run in over_satloss(server)]
    return float(
        sum(each["loss_drops"] + each["queue_drops"] for each in links) / sum(each["received"] for each in links)
    )


def ratios_of_formulas(loss_of: Callable[[str], float]) -> dict[str, float]:
    """Measured goodput of each server over its formula."""
    return {
        server: fmean(all_goodputs(over_satloss(server))) / formula(server, control, loss_of(server))
        for server, control, *_ in rows(FORMULAS)
    }


def test_numbers_of_formulas() -> None:
    found = rows(FORMULAS)
    controls = {row[0]: row[3] for row in rows("Servers and their congestion control")}
    assert [row[:2] for row in found] == [[name, each] for name, each in controls.items() if each != "BBR"]
    for server, control, payload, steady, measured, ratio, dropped, with_drops in found:
        mean, expected, share = (
            fmean(all_goodputs(over_satloss(server))), formula(server, control, 0.01), share_of_drops(server)
        )  # fmt: skip
        assert int(payload) == round(payloads(server))
        assert float(steady) == pytest.approx(expected, abs=0.0052)
        assert float(measured) == pytest.approx(mean, abs=0.0051)
        assert float(ratio) == pytest.approx(mean / expected, abs=0.052)
        assert float(dropped) == pytest.approx(100 * share, abs=0.051)
        assert float(with_drops) == pytest.approx(formula(server, control, share), abs=0.0052)
    drops = [run["evidence"]["simulator"]["forward"]["loss_drops"] for run in matrix()
             if run["test_case"] == "satloss" and succeeded(run)]  # fmt: skip
    assert f"the link drops only {median(drops):.0f} packets per transfer" in the_page()


def test_exceptions_of_formulas() -> None:
    section = the_page().split("## Formulas of Reno and CUBIC\n", 1)[1].split("###", 1)[0]
    assert "quic-go keeps 70 % of its window after a loss, rather than half" in section
    assert f"so its formula is MSS / RTT · √({1.7 / 0.3 / 2:.2g} / p)." in section
    assert "nginx calculates its window in packets of 65527 bytes" in section
    assert f"so its formula gives at least {2 * 65527} bytes / RTT." in section


def test_measurements_over_formulas() -> None:
    parts = []
    for found in (ratios_of_formulas(lambda _: 0.01), ratios_of_formulas(share_of_drops)):
        values = found.values()
        parts.append((f"{median(values):.1f} times the formula", f"{min(values):.1f} to {max(values):.1f} times"))
    (middle, limits), (other, others) = parts
    assert (
        f"- The measured goodput is {middle} (median of the servers; {limits} for individual servers). If p is "
        "replaced by the share of packets that the link and the queue dropped, the measured goodput is "
        f"{other} ({others}).\n"
    ) in section_of(FORMULAS)


def test_servers_much_faster_than_the_formula() -> None:
    much = {server: ratio for server, ratio in ratios_of_formulas(lambda _: 0.01).items() if ratio > 2}
    section = section_of(FORMULAS)
    assert section.count("exceeds the formula by more than a factor of 2") == len(much)
    for server, ratio in much.items():
        means = [fmean(values) for values in by_client(over_satloss(server)).values()]
        assert (
            f"- {server} exceeds the formula by more than a factor of 2 ({ratio:.1f} times; {min(means):.2f} to "
            f"{max(means):.2f} Mbit/s, depending on the client; arithmetic means). "
        ) in section


def test_the_reno_of_quiche_is_as_slow_as_the_formula() -> None:
    """Within 15 %, and many times slower than its CUBIC."""
    reno, cubic = (
        fmean(all_goodputs(matching(runs_of("variants"), test_case="satloss", server=f"quiche:{control}")))
        for control in ("reno", "cubic")
    )
    assert "Its Reno has no such rule, and is as slow as the formula predicts" in section_of(FORMULAS)
    assert reno == pytest.approx(formula("quiche", "NewReno", 0.01), rel=0.15)
    assert cubic > 5 * reno


def test_timeouts_that_the_formula_explains() -> None:
    """Over satloss, 10 MiB in 360 s take more than the formula gives."""
    formulas = {row[0]: float(row[3]) for row in rows("Formulas and measurements over satloss")}
    late = [run for run in matrix() if run["test_case"] == "satloss" and run["verdict"]["outcome"] == "timeout"]
    needed = 8 * 10 * 2**20 / 360 / 1e6
    servers = [name for name, rate in formulas.items() if rate < needed and name in {run["server"] for run in late}]
    count = sum(run["server"] in servers for run in late)
    rates = sorted({f"{formulas[name]:.2f}" for name in servers})
    page = the_page()
    predicted = " to ".join((rates[0], rates[-1]))
    told = f"needs {needed:.2f} Mbit/s to finish in time, but the Reno formula predicts only {predicted} Mbit/s"
    assert page.count(f"{told} for {listed(servers)}") == 2
    which = f"all {count}" if count == len(late) else f"{count} of the {len(late)}"
    assert f"These servers account for {which} runs that timed out over this link." in page
