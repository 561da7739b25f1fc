"""The stored report docs/paper: Table II, servers and clients."""

from __future__ import annotations

from statistics import fmean, median

import pytest

from tests.scripts.stored_paper_report.stored import (
    IN_BOTH,
    IN_THE_PAPER,
    all_goodputs,
    documents,
    goodputs,
    in_both,
    listed,
    matrix,
    metric,
    metrics,
    rows,
    so_far,
    succeeded,
    the_findings,
    the_page,
)

LIMITS = {"terrestrial": 60, "sat": 120, "satloss": 360}
"""Time limits, seconds."""


def test_numbers_of_table_ii() -> None:
    found = {(row[0], row[1]): row for row in rows("Table II")}
    for test_case, mean in IN_THE_PAPER.items():
        assert float(found[test_case, "paper"][2]) == mean
        ours, values = found[test_case, "quicsat, all servers"], goodputs(test_case=test_case)
        assert float(ours[2]) == pytest.approx(fmean(values), abs=0.0051)
        assert float(ours[5]) == pytest.approx(max(values), abs=0.051)
        every = all_goodputs(run for run in matrix() if run["test_case"] == test_case)
        assert float(ours[3]) == pytest.approx(fmean(every), abs=0.0051)
        assert float(ours[4]) == pytest.approx(median(every), abs=0.0051)
        outcomes: dict[tuple[str, str], set[str]] = {}
        for run in matrix():
            if run["test_case"] == test_case and run["verdict"]["outcome"] in ("succeeded", "failed", "timeout"):
                outcomes.setdefault((run["server"], run["client"]), set()).add(run["verdict"]["outcome"])
        assert int(ours[8]) == len(outcomes)
        assert int(ours[6]) + int(ours[7]) == sum(pair != {"succeeded"} for pair in outcomes.values())


def test_numbers_of_servers() -> None:
    found = rows("Servers and their congestion control")
    assert len(found) >= 14
    for name, _, _, _, *cells, good in found:
        for cell, test_case in zip(cells, IN_THE_PAPER, strict=True):
            values = goodputs(server=name, test_case=test_case)
            assert (cell != "") == bool(values)
            if values:
                assert float(cell) == pytest.approx(fmean(values), abs=0.0051)
        runs = [run for run in matrix() if run["server"] == name]
        assert good == f"{len(goodputs(server=name))} of {len(runs)}"


def test_numbers_of_clients() -> None:
    """Each is the mean over the servers that succeeded with all clients."""
    found = rows("Clients")
    assert len(found) >= 14
    for client, *cells, good in found:
        for cell, test_case in zip(cells, IN_THE_PAPER, strict=True):
            lost = {
                run["server"]
                for run in matrix()
                if run["test_case"] == test_case and run["verdict"]["outcome"] != "succeeded"
            }
            servers = {run["server"] for run in matrix()} - lost
            values = [value for name in servers for value in goodputs(server=name, client=client, test_case=test_case)]
            assert float(cell) == pytest.approx(fmean(values), abs=0.0051)
        runs = [run for run in matrix() if run["client"] == client]
        assert good == f"{len(goodputs(client=client))} of {len(runs)}"


def test_efficiency_of_all_runs_in_the_findings() -> None:
    shares = []
    for test_case in IN_THE_PAPER:
        values = all_goodputs(run for run in matrix() if run["test_case"] == test_case)
        shares.append(f"{5 * fmean(values):.0f} %")
    assert f"; for all runs, it is {listed(shares)}. " in the_findings()


@pytest.mark.parametrize("test_case", IN_THE_PAPER)
def test_differences_from_the_paper(test_case: str) -> None:
    """Of the servers and clients that both measured."""
    runs = in_both(matrix(), test_case)
    good = [value / 1e6 for run in runs if (value := metric(run, "goodput")) is not None]
    [line] = [line for line in the_page().splitlines() if line.startswith(f"- **{test_case}**")]
    change = 100 * (fmean(good) / IN_THE_PAPER[test_case] - 1)
    way = "above" if change > 0 else "below"
    assert f"mean goodput is {fmean(good):.2f} Mbit/s, {abs(change):.0f} % {way} the paper's mean" in line
    whole = f"Including unsuccessful runs, our mean is {fmean(all_goodputs(runs)):.2f} Mbit/s."
    assert line.endswith(whole) == (len(good) < len(runs))
    found = {(row[0], row[1]): row for row in rows("Table II")}
    row = found[test_case, f"quicsat, {len(IN_BOTH)} servers and {len(IN_BOTH)} clients of the paper"]
    assert float(row[2]) == pytest.approx(fmean(good), abs=0.0051)
    assert int(row[8]) == len({(run["server"], run["client"]) for run in runs})
    assert f"({', '.join(IN_BOTH_IN_ORDER)})" in the_page()


IN_BOTH_IN_ORDER = [name for name in documents("matrix")[0]["manifest"]["servers"] if name in IN_BOTH]


def test_numbers_of_time_limits() -> None:
    for test_case, limit, paper, count, late, longest, least, middle_cell in rows("Time limits"):
        runs = [run for run in matrix() if run["test_case"] == test_case]
        outcomes = [run["verdict"]["outcome"] for run in runs]
        assert int(limit) == int(paper) == LIMITS[test_case]
        assert (int(count), int(late)) == (len(runs), outcomes.count("timeout"))
        assert int(longest) == round(max(value for run in runs if (value := metric(run, "completion_time"))))
        assert float(least) == pytest.approx(8 * 10 * 2**20 / LIMITS[test_case] / 1e6, abs=0.0051)
        values = sorted([0.0] * int(late) + goodputs(test_case=test_case))
        assert float(middle_cell) == pytest.approx(median(values), abs=0.0051)


def test_runs_whose_client_left_no_file() -> None:
    count = sum(so_far(run) is None for run in matrix())
    told = f"*All runs* omits {count} run{'s' if count > 1 else ''} for which we do not know what had arrived."
    assert (told in the_page()) is bool(count)


@pytest.mark.parametrize(
    ("server", "client", "test_case"), [("picoquic", "picoquic", "satloss"), ("kwik", "msquic", "sat")]
)
def test_numbers_of_single_runs(server: str, client: str, test_case: str) -> None:
    wanted = server, client, test_case
    run = next(run for run in matrix() if (run["server"], run["client"], run["test_case"]) == wanted)
    values = run["measurement"]["values"]
    assert (
        f"- In our measurement, the transfer from {server} to {client} over `{test_case}` takes "
        f"{values['completion_time']:.1f} s, with a goodput of {values['goodput'] / 1e6:.1f} Mbit/s. The server "
        f"reaches 80 % of its steady rate after {values['startup_time']:.1f} s"
    ) in the_page()
    assert (
        f" The server sends {values['sent_per_useful_byte']:.2f} bytes per byte of the file, and at most "
        f"{values['longest_burst']:.0f} packets back to back."
    ) in the_page()


TABLE_II = {
    "terrestrial": ["15.11", "", "", "19.2", "12", "1", "182"],
    "sat": ["5.05", "", "", "12.0", "3", "6", "182"],
    "satloss": ["3.06", "", "", "11.5", "13", "17", "182"],
}
"""Of arXiv 2202.08228: mean, maximum, timeouts, failures and pairs."""


@pytest.mark.parametrize("test_case", IN_THE_PAPER)
def test_other_rows_of_table_ii(test_case: str) -> None:
    """Those of the paper, and of the servers and clients that both measured."""
    found = {row[1]: row[2:] for row in rows("Table II") if row[0] == test_case}
    assert found["paper"] == TABLE_II[test_case]
    [(_, every, middle, most, late, failed, _)] = [cells for name, cells in found.items() if "of the paper" in name]
    runs = in_both(matrix(), test_case)
    assert float(every) == pytest.approx(fmean(all_goodputs(runs)), abs=0.0051)
    assert float(middle) == pytest.approx(median(all_goodputs(runs)), abs=0.0051)
    assert float(most) == pytest.approx(max(metrics(runs, "goodput")) / 1e6, abs=0.051)
    lost = {(run["server"], run["client"]) for run in runs if not succeeded(run)}
    assert int(late) + int(failed) == len(lost)


def test_groups_of_figures() -> None:
    """The number with the largest silhouette, of those that the clustering tries."""
    told = "Each figure uses the number of groups, from 2 to 6, that has the largest silhouette score."
    assert the_page().count(told) == 1
