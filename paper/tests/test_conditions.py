"""Numbers of seeds, delays, queues, clocks, windows and sweeps, computed again from the stored results."""

import math
from collections import defaultdict
from itertools import product
from statistics import fmean, geometric_mean, median, stdev

import pytest

from paper.tests.raw import (
    IN_BOTH,
    IN_THE_PAPER,
    REAL,
    Run,
    all_goodputs,
    by,
    campaigns,
    geometric_interval,
    matching,
    metric,
    metrics,
    numbers,
    runs,
    so_far,
    succeeded,
    table,
)

Pair = tuple[str, str]


def of_pairs(many: list[Run]) -> dict[Pair, list[Run]]:
    found: dict[Pair, list[Run]] = defaultdict(list)
    for run in many:
        found[run["server"], run["client"]].append(run)
    return found


def spread(many: list[Run]) -> float:
    values = metrics(many, "goodput")
    return stdev(values) / fmean(values)


def test_the_spread_over_delays() -> None:
    found = {pair: spread(mine) for pair, mine in of_pairs(list(runs("delays"))).items()}
    assert len(found) == numbers()["delays.pairs"]
    assert numbers()["delays.median"] == pytest.approx(median(found.values()))
    assert numbers()["delays.largest"] == pytest.approx(max(found.values()))
    for row in table("spread-over-delays"):
        assert float(row["spread"]) == pytest.approx(found[row["server"], row["client"]], rel=1e-5)


@pytest.mark.parametrize("link", IN_THE_PAPER)
def test_the_spread_over_seeds(link: str) -> None:
    every = of_pairs(matching((*runs("matrix"), *runs("spread")), test_case=link))
    most = max(map(len, every.values()))
    found = [spread(mine) for mine in every.values() if len(mine) == most and all(map(succeeded, mine))]
    [row] = [row for row in table("spread-over-seeds") if row["link"] == link]
    assert (int(row["pairs"]), int(row["seeds"])) == (len(found), most)
    assert float(row["median"]) == pytest.approx(median(found), rel=1e-5)
    assert float(row["largest"]) == pytest.approx(max(found), rel=1e-5)


def test_repeated_runs() -> None:
    first = {(r["server"], r["client"], r["test_case"], r["evidence"]["seed"]): r for r in runs("matrix", "spread")}
    for part, names in (("repeat", ("repeat", "repeat-spread")),
                        ("another-machine", ("another-machine", "another-machine-spread"))):  # fmt: skip
        pairs = [(first[r["server"], r["client"], r["test_case"], r["evidence"]["seed"]], r) for r in runs(*names)]
        good = exact = 0
        for one, two in pairs:
            rates = metric(one, "goodput"), metric(two, "goodput")
            change = abs(rates[1] / rates[0] - 1) if rates[0] and rates[1] else 0.0
            good += one["verdict"]["outcome"] == two["verdict"]["outcome"] and change <= 0.005
            exact += None not in rates and change == 0
        assert numbers()[f"repeated.{part}"] == len(pairs)
        assert numbers()[f"repeated.{part}.reproduced"] == good
        assert numbers()[f"repeated.{part}.exact"] == exact


def test_options_that_select_the_default() -> None:
    known = campaigns("matrix")[0]["manifest"]["implementations"]
    default = {each["name"]: (each["congestion_control"] or {}).get("default") for each in known}
    own = {(r["server"], r["client"], r["evidence"]["seed"]): so_far(r)
           for r in matching(runs("matrix"), test_case="sat")}  # fmt: skip
    changes = []
    for run in matching(runs("variants"), test_case="sat"):
        server, _, variant = run["server"].partition(":")
        before, after = own.get((server, run["client"], run["evidence"]["seed"])), so_far(run)
        if default[server] == variant and before and after:
            changes.append(abs(after / before - 1))
    assert (numbers()["explicit.sat"], numbers()["explicit.sat.same"]) == (len(changes), changes.count(0.0))
    assert numbers()["explicit.sat.largest"] == pytest.approx(max(changes))


# ---- queues ---------------------------------------------------------------------------------


def both_queues(link: str) -> list[tuple[Run, Run]]:
    own = {(r["server"], r["client"], r["evidence"]["seed"]): r for r in matching(runs("matrix"), test_case=link)}
    longer = matching(runs("queues"), test_case=f"{link}-paper-queue")
    return [(own[r["server"], r["client"], r["evidence"]["seed"]], r) for r in longer]


@pytest.mark.parametrize("link", ["sat", "satloss"])
def test_the_longer_queue(link: str) -> None:
    pairs = both_queues(link)
    shared = [(one, two) for one, two in pairs if {one["server"], one["client"]} <= IN_BOTH]
    before, after = (fmean(metrics([each[place] for each in shared], "goodput")) for place in (0, 1))
    assert numbers()[f"queue.{link}.growth"] == pytest.approx(after / before - 1)
    assert numbers()[f"queue.{link}.against_paper"] == pytest.approx(after / IN_THE_PAPER[link] - 1)
    faster, significant = [], []
    p_values = {
        row["server"]: float(row["p-value, corrected"]) for row in table("queue-factors") if row["link"] == link
    }
    raw = {}
    for row in table("queue-factors"):
        if row["link"] != link:
            continue
        factors = [two / one for a, b in pairs if a["server"] == row["server"]
                   if (one := so_far(a)) and (two := so_far(b))]  # fmt: skip
        value, low, high = geometric_interval(factors)
        assert [float(row[key]) for key in ("factor", "low", "high")] == pytest.approx([value, low, high], rel=1e-3)
        faster += [row["server"]] if low > 1 else []
        logs = [math.log(each) for each in factors]
        sums = [abs(sum(sign * each for sign, each in zip(signs, logs, strict=True)))
                for signs in product((1, -1), repeat=len(logs))]  # fmt: skip
        raw[row["server"]] = sum(each >= abs(sum(logs)) * (1 - 1e-9) for each in sums) / len(sums)
    largest = 0.0
    for place, server in enumerate(sorted(raw, key=raw.__getitem__)):
        largest = max(largest, min(1.0, raw[server] * (len(raw) - place)))
        assert p_values[server] == pytest.approx(largest, abs=1e-4)
        significant += [server] if largest <= 0.05 else []
    assert numbers()[f"queue.{link}.faster.count"] == len(faster)
    assert numbers()[f"queue.{link}.corrected.count"] == len(significant)


def test_runs_in_which_no_queue_dropped_a_packet() -> None:
    changes = []
    for link in ("sat", "satloss"):
        for pair in both_queues(link):
            links = [run["evidence"]["simulator"][way] for run in pair for way in ("forward", "back")]
            rates = [so_far(run) for run in pair]
            if not any(each["queue_drops"] for each in links) and rates[0] and rates[1]:
                changes.append(abs(rates[1] / rates[0] - 1))
    assert numbers()["queue.no_drops"] == len(changes)
    assert numbers()["queue.no_drops.same"] == changes.count(0.0)


# ---- clocks ---------------------------------------------------------------------------------


@pytest.mark.parametrize("link", IN_THE_PAPER)
def test_both_clocks(link: str) -> None:
    virtual, real = ([run for run in matching(many, test_case=link) if succeeded(run)]
                     for many in (runs("matrix"), runs(*REAL)))  # fmt: skip
    if link == "satloss":
        keys = [{(r["server"], r["client"], r["evidence"]["seed"]) for r in many} for many in (virtual, real)]
        virtual, real = ([r for r in many if (r["server"], r["client"], r["evidence"]["seed"]) in keys[0] & keys[1]]
                         for many in (virtual, real))  # fmt: skip
    one, other = of_pairs(virtual), of_pairs(real)
    means = [{pair: fmean(metrics(found, "goodput")) for pair, found in each.items()} for each in (one, other)]
    ratios = {pair: means[0][pair] / means[1][pair] for pair in one.keys() & other.keys()}
    near = [sum(abs(ratio - 1) <= limit for ratio in ratios.values()) for limit in (0.03, 0.1)]
    stored = [numbers()[f"clocks.{link}.{name}"] for name in ("pairs", "close", "near")]
    assert stored == [len(ratios), *near]
    rms = math.sqrt(fmean(math.log(ratio) ** 2 for ratio in ratios.values()))
    assert numbers()[f"clocks.{link}.rms"] == pytest.approx(rms)
    servers = {server: [ratio for pair, ratio in ratios.items() if pair[0] == server] for server, _ in ratios}
    mean = geometric_mean(map(geometric_mean, servers.values()))
    assert numbers()[f"clocks.{link}.ratio"] == pytest.approx(mean)
    for row in table("clocks-servers"):
        if row["link"] == link and int(row["clients"]) > 1:
            found = geometric_interval(servers[row["server"]])
            assert [float(row[key]) for key in ("mean ratio", "low", "high")] == pytest.approx(found, rel=1e-3)


def test_outcomes_with_both_clocks() -> None:
    """All runs in real time succeeded, and so did those with the same losses, or of the same pair, in virtual time."""
    assert numbers()["clocks.outcomes"] == numbers()["clocks.outcomes.same"] == len(runs(*REAL))
    good = {(r["server"], r["client"], r["test_case"], r["evidence"]["seed"]) for r in runs("matrix") if succeeded(r)}
    pairs = {key[:3] for key in good}
    for run in runs(*REAL):
        key = run["server"], run["client"], run["test_case"]
        assert ((*key, run["evidence"]["seed"]) in good) if key[2] == "satloss" else (key in pairs)


# ---- windows and single runs -----------------------------------------------------------------


def test_goodput_by_the_windows_of_the_client() -> None:
    for row in table("windows"):
        for server in ("picoquic", "lsquic", "quinn"):
            [value] = all_goodputs(matching(runs("windows"), client=row["client"], server=server))
            assert float(row[f"goodput, {server} [bit/s]"]) == pytest.approx(value, rel=1e-5)
    assert numbers()["windows.limit"] == pytest.approx(8 * 512 * 1024 / 0.6)
    large = {run["server"]: metric(run, "goodput") for run in runs("quic-go-windows")}
    assert numbers()["windows.picoquic.quic-go.large"] == pytest.approx(large["picoquic"])


def test_the_unpaced_start() -> None:
    mine = {
        run["client"]: metric(run, "goodput") for run in matching(runs("matrix"), test_case="sat", server="quic-go")
    }
    slow = [mine.pop(client) for client in ("kwik", "lsquic")]
    assert [numbers()[f"start.{client}"] for client in ("kwik", "lsquic")] == pytest.approx(slow)
    rest = [value for value in mine.values() if value]
    assert (numbers()["start.others.low"], numbers()["start.others.high"]) == pytest.approx((min(rest), max(rest)))


def test_sweeps() -> None:
    """The first and the last value of each sweep."""
    found: dict[str, dict[str, dict[str, float]]] = defaultdict(lambda: defaultdict(dict))
    for row in table("sweeps"):
        found[row["swept"]][row["value"]][row["server and client"]] = float(row["goodput, or so far [bit/s]"])
    stored = sorted(value for name in by("server", RUNS) for value in all_goodputs(matching(RUNS, server=name)))
    assert sorted(value for sweep in found.values() for each in sweep.values() for value in each.values()) == (
        pytest.approx(stored, rel=1e-5)
    )
    for key, sweep in found.items():
        first, *_, last = sweep.values()
        ratios = [last[name] / first[name] for name in first]
        name = f"sweep.{key.replace(' ', '_')}"
        assert (numbers()[f"{name}.low"], numbers()[f"{name}.high"]) == pytest.approx(
            (min(ratios), max(ratios)), rel=1e-4
        )


RUNS = runs(*(f"sweeps-{name}" for name in ("ngtcp2", "picoquic", "quic-go", "quiche", "quinn", "s2n-quic")))
