"""What the report docs/paper says of congestion control algorithms."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import replace

import pytest

from interop.model.evidence import HostFacts
from interop.model.implementation import CongestionControl
from interop.model.results import Measurement, ResultSet, RunResult
from interop.model.units import MBPS
from scripts.paper.variants import (
    OF_VERSION_1,
    algorithm_or_implementation,
    conclusion,
    factors_of,
    fastest_over_slowest,
    finding,
    further_bbr,
    including_0,
    means_of_controls,
    robustness,
    uncertain,
    with_known_controls,
    without_the_underflow,
)
from tests.results_builder import SAT, SATLOSS, result_set, runs
from tests.scripts.paper.campaigns import ARRIVED, variants


def test_tables_and_factors() -> None:
    late = (6 + ARRIVED * 8 / SATLOSS.timeout / 1e6) / 2
    page = "\n".join(str(line) for line in algorithm_or_implementation(variants(), ()))
    rows = [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in page.splitlines()
        if "quic" in line or "quinn" in line
    ]
    assert ["quinn", "", "2.00", "8.00", "", ""] in rows
    assert ["picoquic", "1.00", "", f"{late:.2f} T", "", ""] in rows
    assert f"With BBR, the goodput of the fastest implementation is {8 / late:.1f} times that" in page
    assert "With CUBIC" not in page


def test_other_variants_are_left_out() -> None:
    results = result_set(
        runs(4 * MBPS, server="picoquic:bbr") + runs(4 * MBPS, server="picoquic:c4"),
        servers=("picoquic:bbr", "picoquic:c4"),
    )
    assert with_known_controls(results).manifest.servers == ("picoquic:bbr",)
    assert {each.server for each in with_known_controls(results).results} == {"picoquic:bbr"}


def test_one_congestion_control_instead_of_another() -> None:
    """Twice and eight times as fast: four times as fast at the geometric mean, and each of both without the other."""
    found = [
        run
        for server, rate in (("a:cubic", 1), ("a:bbr", 2), ("b:cubic", 1), ("b:bbr", 8), ("c:bbr", 5))
        for run in runs(rate * MBPS, server=server)
    ]
    results = result_set(found, servers=("a:cubic", "a:bbr", "b:cubic", "b:bbr", "c:bbr"))
    [case] = results.manifest.test_cases
    assert factors_of(results, case, "CUBIC", "BBR") == {"a": pytest.approx(2), "b": pytest.approx(8)}
    assert factors_of(results, case, "Reno", "CUBIC") == {}
    told = "\n".join(str(line) for line in algorithm_or_implementation(results, ()))
    assert "Switching from CUBIC to BBR multiplies the goodput of an implementation by 4.0 (" in told
    assert "If one implementation is left out, this factor is 2.0 (without b) to 8.0 (without a)." in told


def eight_implementations(factor: float, step: float) -> ResultSet:
    """Each with two congestion control algorithms, and a little that is not additive.

    ``factor``: BBR over Reno. ``step``: each implementation over the one before.
    """
    servers = tuple(f"s{number}:{control}" for number in range(8) for control in ("reno", "bbr"))
    clients = ("x", "y", "z")
    found = [
        run
        for number, server in enumerate(servers)
        for place, client in enumerate(clients)
        for run in runs(
            MBPS * (factor if "bbr" in server else 1) * step ** (number // 2) * (1 + 0.01 * place * (number % 3)),
            server=server,
            client=client,
        )
    ]
    return result_set(found, servers=servers, clients=clients)


def test_the_larger_share_is_named() -> None:
    def told(factor: float, step: float) -> str:
        return "\n".join(conclusion(eight_implementations(factor, step)))

    assert re.search(r"is -\d+ percentage points \(95 % confidence interval -\d+ to -\d+\)", told(20, 1.01))
    assert re.search(r"is \+\d+ percentage points \(95 % confidence interval \+\d+ to \+\d+\)", told(1.01, 3))
    assert re.search(r"percentage points \(95 % confidence interval -\d+ to \+\d+\)", told(3, 1.4))
    assert "The interval is below 0, so the congestion control's share is larger." in told(20, 1.01)
    assert "The interval is above 0, so the implementation's share is larger." in told(1.01, 3)
    assert "The interval includes 0, so these data do not show which share is larger." in told(3, 1.4)
    assert "significant" not in told(20, 1.01)


def three_algorithms() -> ResultSet:
    """Four implementations with all algorithms, one without BBR, and msquic without Reno."""
    names: list[tuple[str, tuple[str, ...]]] = [(f"i{number}", ("reno", "cubic", "bbr")) for number in range(4)]
    names += [("i4", ("reno", "cubic")), ("msquic", ("cubic", "bbr"))]
    found = [
        run
        for number, (name, controls) in enumerate(names)
        for place, control in enumerate(controls)
        for step, client in enumerate(("x", "y"))
        for run in runs(
            (1 + number + place * number % 3 + 0.1 * step) * MBPS, server=f"{name}:{control}", client=client
        )
    ]
    servers = tuple(f"{name}:{control}" for name, controls in names for control in controls)
    return result_set(found, servers=servers, clients=("x", "y"), repetitions=1)


def test_differences_of_some_of_the_runs() -> None:
    rows = {row[1]: row for row in robustness(three_algorithms()).rows}
    assert rows["implementations with all three algorithms"][2] == 4
    assert rows["Reno and CUBIC only"][2] == 5
    assert rows["without msquic:bbr"][2] == 5
    assert "msquic:cubic without the underflow" not in rows
    assert "without picoquic:cubic" not in rows
    assert "BBR version 1 only" not in rows
    assert all(isinstance(row[3], float) for row in rows.values())


def test_corrected_runs_take_the_place_of_those_with_the_underflow() -> None:
    """Only of the same client and losses; the factor of msquic's BBR then rises from 1 to 4."""
    both = [*runs(4 * MBPS, server="msquic:cubic", client="x"), *runs(4 * MBPS, server="msquic:bbr", client="x")]
    others = [*runs(MBPS, server="a:cubic", client="x"), *runs(2 * MBPS, server="a:bbr", client="x")]
    results = result_set(
        both + others, servers=("msquic:cubic", "msquic:bbr", "a:cubic", "a:bbr"), clients=("x",), repetitions=1
    )
    fixed = result_set(runs(MBPS, server="msquic", client="x"), servers=("msquic",))
    corrected = without_the_underflow(results, fixed)
    assert factors_of(results, SAT, "CUBIC", "BBR") == pytest.approx({"msquic": 1, "a": 2})
    assert factors_of(corrected, SAT, "CUBIC", "BBR") == pytest.approx({"msquic": 4, "a": 2})
    other = replace(fixed, results=tuple(replace(run, client="y") for run in fixed.results))
    assert without_the_underflow(results, other).results == without_the_underflow(results, None).results
    told = "\n".join(str(line) for line in algorithm_or_implementation(results, (), fixed))
    assert "Without the underflow of msquic's counter, it is 2.8 (" in told
    assert "Without the underflow" not in "\n".join(str(line) for line in algorithm_or_implementation(results, ()))


def test_runs_with_other_losses_are_left_out_where_there_are_corrected_ones() -> None:
    """Only the first of two seeds has corrected runs; the other link has none and keeps both seeds."""
    both = runs(4 * MBPS, 5 * MBPS, server="msquic:cubic", client="x")
    elsewhere = runs(6 * MBPS, 7 * MBPS, server="msquic:cubic", client="x", test_case="satloss")
    results = result_set(
        both + elsewhere, servers=("msquic:cubic",), clients=("x",), test_cases=(SAT, SATLOSS), repetitions=2
    )
    fixed = result_set(runs(MBPS, server="msquic", client="x"), servers=("msquic",))
    kept = without_the_underflow(results, fixed).results
    goodputs = {(run.test_case, run.repetition): run.measurement.values["goodput"] for run in kept if run.measurement}
    assert goodputs == {("sat", 1): MBPS, ("satloss", 1): 6 * MBPS, ("satloss", 2): 7 * MBPS}


def test_the_subset_without_the_underflow() -> None:
    results = three_algorithms()
    fixed = [replace(run, server="msquic") for run in results.results if run.server == "msquic:cubic"]
    slower = [
        replace(run, measurement=Measurement({"goodput": run.measurement.values["goodput"] / 10}))
        for run in fixed
        if run.measurement
    ]
    found = {row[1] for row in robustness(results, replace(results, results=tuple(slower))).rows}
    assert found - {row[1] for row in robustness(results).rows} == {"msquic:cubic without the underflow"}


def test_rows_with_three_implementations_are_not_counted() -> None:
    table = robustness(three_algorithms())
    row = list(table.rows[0])
    few, several, above = ((*row[:2], count, 0.1, low, 0.3, 0.2) for count, low in ((3, -0.2), (4, -0.2), (5, 0.05)))
    assert including_0(replace(table, rows=(few, several, above))) == (1, 2)
    [told, _] = uncertain(replace(table, rows=(few, several, above)))
    assert told.startswith("Of the 2 rows with more than three implementations, 1 has a confidence interval")
    assert list(uncertain(replace(table, rows=(few,)))) == []


def test_other_versions_of_bbr_are_left_out() -> None:
    """Two of five implementations with BBR have version 1; without another BBR, msquic has CUBIC alone."""
    results = three_algorithms()
    control = CongestionControl("bbr", source="its BBR is version 1")
    known = tuple(
        replace(each, congestion_control=control) if each.name in ("i0:bbr", "i1:bbr") else each
        for each in results.manifest.implementations
    )
    rows = robustness(replace(results, manifest=replace(results.manifest, implementations=known))).rows
    found = {row[1]: row for row in rows}
    assert found["BBR version 1 only"][2] == 5
    assert found["BBR version 1 only"][3] != found["Reno and CUBIC only"][3]


def test_a_further_bbr_of_version_1_counts_as_the_one_of_its_implementation() -> None:
    """picoquic:bbr1 beside picoquic:bbr, whose version is another one."""
    results = three_algorithms()
    names = {"i0": "picoquic"}
    renamed = tuple(
        replace(run, server=names.get(name, name) + ":" + variant)
        for run in results.results
        for name, _, variant in [run.server.partition(":")]
    )
    more = tuple(run for step, client in enumerate("xy") for run in runs((8 + step) * MBPS, server="picoquic:bbr1",
                                                                         client=client))  # fmt: skip
    servers = tuple(dict.fromkeys(run.server for run in (*renamed, *more)))
    both = result_set((*renamed, *more), servers=servers, clients=("x", "y"), repetitions=1)
    [case] = both.manifest.test_cases
    assert further_bbr(both, case, "1") == {
        ("picoquic", "BBR", "x"): pytest.approx(math.log(8 * MBPS)),
        ("picoquic", "BBR", "y"): pytest.approx(math.log(9 * MBPS)),
    }
    assert further_bbr(both, case, "2") == {}
    with_it = {row[1]: row for row in robustness(both).rows}[OF_VERSION_1]
    without = {row[1]: row for row in robustness(with_known_controls(both)).rows}
    assert with_it[2] == 5
    assert with_it[3:] not in [row[3:] for row in without.values()]
    told = "\n".join(str(line) for line in algorithm_or_implementation(both, ()))
    assert (
        " picoquic:bbr1 is picoquic with version 1 of BBR (`bbr1.c`). Each implementation should have only one BBR, so "
        "picoquic's BBR is picoquic:bbr1 in the subset *BBR version 1 only*, and picoquic:bbr everywhere else."
    ) in told
    assert "It omits" not in told


def test_the_finding_has_factors_and_shares_of_each_link() -> None:
    """BBR is the fastest of three algorithms."""
    [told] = finding(three_algorithms())
    assert told.startswith("- Over `sat`, switching from Reno to CUBIC multiplies the goodput of an implementation")
    assert ", and switching from CUBIC to BBR multiplies it by " in told
    ratios = [ratio for ratio, _ in fastest_over_slowest(means_of_controls(three_algorithms(), SAT)).values()]
    assert f"the goodput of the fastest implementation is {min(ratios):.1f} to " in told
    assert ratios[0] == pytest.approx((5 + 0.05) / (1 + 0.05))
    assert "Over all these runs, the implementation accounts for 9" in told
    assert " of the variance, the congestion control for " in told
    assert ", and their interaction for " in told
    assert list(finding(result_set())) == []


def test_the_finding_says_if_the_data_do_not_show_which_share_is_larger() -> None:
    [told] = finding(eight_implementations(3, 1.4))
    assert "The interval includes 0, so these data do not show which share is larger. These runs have" in told
    [told] = finding(eight_implementations(20, 1.01))
    assert "The interval is below 0, so the congestion control's share is larger. These runs have" in told


def test_seeds_of_another_machine_are_named() -> None:
    def on(processor: str, found: Sequence[RunResult]) -> list[RunResult]:
        host = HostFacts("6.1", "x86_64", 2, 1, "20.10", 0.0, processor=processor)
        return [replace(run, evidence=replace(run.evidence, host=host)) for run in found]

    first, second, third = runs(MBPS, MBPS, MBPS, server="a:bbr")
    found = [*on("x", [first]), *on("y", [second, third])]
    results = result_set(found, servers=("a:bbr",), repetitions=3)
    told = "\n".join(str(line) for line in algorithm_or_implementation(results, ()))
    assert "The runs with seeds 2 and 3 took place on another machine." in told
    results = result_set(on("x", [first, second, third]), servers=("a:bbr",), repetitions=3)
    told = "\n".join(str(line) for line in algorithm_or_implementation(results, ()))
    assert "another machine" not in told


def test_shares_at_the_limit_make_the_interval_too_narrow() -> None:
    """All implementations are the same, or differ."""
    told = "The share of the implementation is 0 whichever implementation is left out, so these intervals do not"
    assert told in "\n".join(conclusion(eight_implementations(20, 1)))
    assert told in "\n".join(finding(eight_implementations(20, 1)))
    assert "whichever implementation is left out" not in "\n".join(conclusion(eight_implementations(3, 1.4)))


def test_the_finding_has_a_factor_without_msquic_where_it_was_not_corrected() -> None:
    """CUBIC to BBR: 2 for a, 8 for msquic, and 2 for b."""
    rates = {"a": (1, 2), "msquic": (1, 8), "b": (2, 4), "c": (3, 6), "d": (1, 2)}
    names = [f"{name}:{control}" for name in rates for control in ("cubic", "bbr")]
    found = [
        run
        for name, both in rates.items()
        for control, rate in zip(("cubic", "bbr"), both, strict=True)
        for place, client in enumerate(("x", "y", "z"))
        for run in runs(rate * (1 + 0.01 * place * rate) * MBPS, server=f"{name}:{control}", client=client)
    ]
    results = result_set(found, servers=tuple(names), clients=("x", "y", "z"))
    elsewhere = result_set(runs(MBPS, server="msquic", test_case="satloss"), test_cases=(SATLOSS,))
    [told] = finding(results, elsewhere)
    assert re.search(r", or by 2\.0 \([\d. to]+\) without msquic, whose counter underflows with CUBIC\.", told)
    assert "without msquic" not in "\n".join(finding(results))
    here = result_set(runs(MBPS, server="msquic"))
    assert "without msquic" not in "\n".join(finding(results, here))


def test_implementations_above_the_threshold_are_counted() -> None:
    """The threshold over satloss is 2 Mbit/s; one run of picoquic:bbr times out."""
    told = "\n".join(str(line) for line in algorithm_or_implementation(variants(), ()))
    assert (
        "The mean efficiency exceeds 10 % for 0 of 1 implementations with Reno, 0 of 1 with CUBIC and 2 of 2 with BBR "
        "(quinn, picoquic)."
    ) in told


def test_what_a_server_sent_although_it_had_arrived() -> None:
    """The sentence is about the server with the largest share of dropped packets."""
    found = []
    for server, drops, repeated in (("a:bbr", 0.5, 0.4), ("b:bbr", 0.1, 0.0)):
        values = {"goodput": MBPS, "queue_loss": drops, "spurious": repeated}
        found += [replace(run, measurement=Measurement(values)) for run in runs(MBPS, server=server)]
    told = "\n".join(
        str(line) for line in algorithm_or_implementation(result_set(found, servers=("a:bbr", "b:bbr")), ())
    )
    assert "50 % of the packets of a:bbr, the largest share" in told
    assert "Of the bytes that clients received from a:bbr, 40 % had already arrived earlier." in told


def test_versions_of_bbr_and_variants_that_are_left_out() -> None:
    results = result_set(
        runs(4 * MBPS, server="a:bbr") + runs(4 * MBPS, server="b:bbr") + runs(4 * MBPS, server="b:c4"),
        servers=("a:bbr", "b:bbr", "b:c4"),
        repetitions=1,
    )
    control = CongestionControl("bbr", source="its BBR is version 2")
    known = tuple(
        replace(each, congestion_control=control) if each.name == "a:bbr" else each
        for each in results.manifest.implementations
    )
    results = replace(results, manifest=replace(results.manifest, implementations=known))
    told = "\n".join(str(line) for line in algorithm_or_implementation(results, ()))
    assert "Here, a implements version 2; the data set does not name the version of b." in told
    assert "This section compares 2 of the 3 pairs of the campaign. It omits b:c4, because no other" in told
    assert "no other implementation has this algorithm." in told
    assert "These runs have one seed." in told


def test_a_server_without_known_goodput_has_no_mean() -> None:
    results = result_set(runs(None, server="quinn:bbr"), servers=("quinn:bbr",))
    assert means_of_controls(results, results.manifest.test_cases[0]) == {}
