"""The stored report docs/paper: sweeps."""

from __future__ import annotations

import re
from collections import defaultdict
from statistics import fmean

import pytest

from tests.scripts.stored_paper_report.stored import (
    all_goodputs,
    cases_of,
    documents,
    listed,
    matching,
    matrix,
    metrics,
    rows,
    runs_of,
    section_of,
    stored_part,
    the_findings,
    the_page,
)


@pytest.mark.skipif(not stored_part["sweeps"], reason="no sweep is stored")
@pytest.mark.parametrize(
    ("key", "family"),
    [("forward queue", "paper-queue"), ("delay", "paper-delay"), ("forward loss", "paper-loss"),
     ("file size", "paper-size")],
)  # fmt: skip
def test_numbers_of_sweeps(key: str, family: str) -> None:
    heading = f"Goodput in Mbit/s by {key}"
    cases = [name for name in cases_of("sweeps") if name.startswith(family)]
    ratios = {}
    for name, *cells in rows(heading):
        means = list[float]()
        for case, cell in zip(cases, cells, strict=True):
            runs = [run for run in runs_of("sweeps") if (run["server"], run["test_case"]) == (name, case)]
            means.append(fmean(all_goodputs(runs)))
            assert float(cell.removesuffix(" T")) == pytest.approx(means[-1], abs=0.0051)
            assert cell.endswith(" T") == any(run["verdict"]["outcome"] != "succeeded" for run in runs)
        ratios[name] = means[-1] / means[0]
    assert len(ratios) >= 6
    least, most = min(ratios, key=lambda name: ratios[name]), max(ratios, key=lambda name: ratios[name])
    told = f"goodput changes by a factor of {ratios[least]:.2g} ({least}) to {ratios[most]:.2g} ({most})."
    if ratios[most] <= 1:
        told = f"goodput is {100 * ratios[least]:.0f} % ({least}) to {100 * ratios[most]:.0f} % ({most}) of that at "
    assert told in section_of(heading)


@pytest.mark.skipif(not stored_part["sweeps"], reason="no sweep is stored")
def test_runs_over_the_same_link_with_other_seeds() -> None:
    same = ("paper-queue@forward-queue=25", "paper-delay@delay=300ms", "paper-loss@forward-loss=0pct")
    found: dict[str, list[float]] = defaultdict(list)
    for run in (*runs_of("sweeps"), *matrix()):
        if run["server"] == run["client"] and run["test_case"] in (*same, "sat"):
            found[run["server"]] += all_goodputs([run])
    swept = {run["server"] for run in runs_of("sweeps")}
    spread = {name: max(values) / min(values) - 1 for name, values in found.items() if name in swept}
    most = max(spread, key=lambda name: spread[name])
    rest = max(value for name, value in spread.items() if name != most)
    page = the_page()
    assert f"In these runs, {most} reaches {listed(f'{value:.2f}' for value in sorted(found[most]))} Mbit/s, so" in page
    assert f"results with different seeds differ by up to {100 * spread[most]:.0f} %." in page
    assert f"The results of the other implementations differ by at most {100 * rest:.1f} %." in page


@pytest.mark.skipif(not stored_part["sweeps"], reason="no sweep is stored")
def test_runs_of_the_sweep_in_which_the_link_lost_a_packet() -> None:
    parts = list[str]()
    for text in ("0.01", "0.1", "1", "2", "5"):
        runs = [run for run in runs_of("sweeps") if run["test_case"] == f"paper-loss@forward-loss={text}pct"]
        lost = sum(run["evidence"]["simulator"]["forward"]["loss_drops"] > 0 for run in runs)
        parts.append(f"{lost} of {len(runs)}{'' if parts else ' runs'} at {text} %")
    assert f"The link lost at least one packet in {listed(parts)}." in section_of("Goodput in Mbit/s by forward loss")


@pytest.mark.skipif(not stored_part["sweeps"], reason="no sweep is stored")
def test_queue_of_the_sweep_of_the_delay() -> None:
    """Bandwidth-delay products of 20 Mbit/s and twice the delay, in packets of 1,500 bytes."""
    delays = [float(name.partition("=")[2].removesuffix("ms")) for name in cases_of("sweeps") if "delay" in name]
    products = [20e6 * 2 * delay / 1000 / 12_000 for delay in (delays[0], delays[-1])]
    assert (
        f"grows from {products[0]:.0f} to {products[1]:.0f} packets. The queue therefore shrinks from "
        f"{100 * 25 / products[0]:.0f} to {100 * 25 / products[1]:.1f} % of this product"
    ) in section_of("Goodput in Mbit/s by delay")


@pytest.mark.skipif(not stored_part["sweeps"], reason="no sweep is stored")
def test_time_limits_of_the_sweeps() -> None:
    limits: dict[str, set[float]] = defaultdict(set)
    for case in documents("sweeps")[0]["manifest"]["test_cases"]:
        limits[case["family"]["values"][0]["key"]].add(case["timeout"])
    told = listed(f"{max(each):g} s ({key})" for key, each in limits.items())
    assert all(len(each) == 1 for each in limits.values())
    assert f" The time limits of the sweeps are {told}.\n" in the_page()


@pytest.mark.skipif(not stored_part["sweeps"], reason="no sweep is stored")
def test_seconds_until_the_file_has_arrived() -> None:
    cases = [name for name in cases_of("sweeps") if name.startswith("paper-size")]
    found = rows("Seconds until the file has arrived, by file size")
    assert [row[0] for row in found] == [row[0] for row in rows("Goodput in Mbit/s by file size")]
    for name, *cells in found:
        for case, cell in zip(cases, cells, strict=True):
            times = metrics(matching(runs_of("sweeps"), server=name, test_case=case), "completion_time")
            assert (float(cell) if cell else None) == (pytest.approx(fmean(times), abs=0.0051) if times else None)


@pytest.mark.skipif(not stored_part["sweeps"] or not stored_part["real"], reason="one of both campaigns is not stored")
def test_ratios_of_both_clocks_of_the_pairs_of_the_sweeps() -> None:
    """The same as in the tables of all pairs, which test_real_time computes again."""
    swept = {run["server"] for run in runs_of("sweeps")}
    [line] = [line for line in the_page().splitlines() if line.startswith("We did not measure the sweeps in real time")]
    clients = list(dict.fromkeys(name for each in documents("real") for name in each["manifest"]["clients"]))
    for test_case in cases_of("real"):
        told = re.search(rf"over `{test_case}`: ([^;]+?)[;.]( |$)", line)
        assert told is not None
        ratios = dict(each.split(" ") for each in told[1].split(", "))
        assert ratios.keys() == swept
        for name, *cells in rows(f"Goodput in virtual time relative to real time, over {test_case}"):
            if name in swept:
                assert cells[clients.index(name)].removesuffix(r" \*") == ratios[name]


@pytest.mark.skipif(not stored_part["sweeps"], reason="no sweep is stored")
def test_the_finding_about_sweeps() -> None:
    """It repeats the sentences of the sections, and has the factors of the other kind of goodput."""
    [line] = [line for line in the_findings().splitlines() if line.startswith("- We changed one parameter of `sat`")]
    for key in ("forward queue", "delay", "forward loss", "file size"):
        [told] = re.findall(
            r"^(.+) In the figures, this sweep is called", section_of(f"Goodput in Mbit/s by {key}"), re.M
        )
        assert told in line
    assert f"with {len({run['server'] for run in runs_of('sweeps')})} pairs of an implementation with itself." in line
    first, *_, last = [name for name in cases_of("sweeps") if name.startswith("paper-size")]
    ratios = {}
    for name in {run["server"] for run in runs_of("sweeps")}:
        small, large = (
            fmean(metrics(matching(runs_of("sweeps"), server=name, test_case=case), "stream_goodput"))
            for case in (first, last)
        )
        ratios[name] = large / small
    least, most = min(ratios, key=lambda name: ratios[name]), max(ratios, key=lambda name: ratios[name])
    assert f"by a factor of {ratios[least]:.2g} ({least}) to {ratios[most]:.2g} ({most}). These runs have one" in line
    [spread] = re.findall(r"results with different seeds differ by up to (\d+ %)\.", the_page())
    assert f"over `sat` differs by up to {spread}. See [Sweeps]" in line
