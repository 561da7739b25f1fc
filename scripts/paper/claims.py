"""What the paper concludes, and whether our measurements lead to the same conclusion."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from interop.model.outcomes import Outcome
from interop.model.results import ResultSet
from interop.model.test_case import TestCase
from interop.report.table import Column, Table
from interop.statistics.overview import THRESHOLD, scenario
from interop.statistics.samples import find, value_of
from scripts.paper.algorithms import SLOW, above, of_defaults
from scripts.paper.goodput import known, of_case
from scripts.paper.influence import means_of_clients, means_of_servers, mostly_server, with_both_intervals
from scripts.paper.matrix import always_successful, common, in_common
from scripts.paper.packets import OF_THE_PAPER, Pair
from scripts.paper.published import BETTER_AS, FORWARD_RATE, TABLE_II, TIME_OF_FIGURE_7
from scripts.paper.resampling import RESAMPLES, SEED
from scripts.paper.words import counted, listed

AGREES, DIFFERS, UNDECIDED = "agrees", "differs", "undecided"
WELL = 0.9
"""Share of the largest mean from which on an implementation counts as performing well."""
SAME = 0.1
"""Relative difference of two times that the table calls the same."""


@dataclass(frozen=True)
class Answer:
    """What a campaign shows about a claim."""

    measured: str
    comparison: str


def claims(results: ResultSet, longer: ResultSet | None = None) -> Table:
    """One row for each claim about implementations and links that we measure.

    ``longer``: runs with the queue of the paper's simulator, over links with the names of those of ``results``.
    """
    columns = (
        Column("section"), Column("paper"), Column("this page, queues of 25 packets"),
        Column("this page, queues of the paper's simulator"), Column("comparison"),
    )  # fmt: skip
    rows = list[tuple[str, ...]]()
    for section, claim, measure in _claims():
        first, second = measure(results), measure(longer) if longer is not None else None
        if first is not None:
            compared = _both(first.comparison, second.comparison) if second is not None else first.comparison
            rows.append((section, claim, first.measured, second.measured if second is not None else "", compared))
    note = (
        "*Section* is the section of the paper. An implementation performs well here if its mean goodput is at least "
        f"{100 * WELL:.0f} % of that of the fastest one; the paper gives no definition. It is undecided if the 95 % "
        "interval of a bootstrap over the partners includes this limit; the fastest one is the same in all resamples. "
        "For servers, the means are over all runs; for clients, they are over the runs of the servers that always "
        "succeeded over the link. The runs with the [queues of the paper's "
        "simulator](#queue-of-the-papers-simulator) have one seed, and include only `sat` and `satloss`. The first "
        "interval of a share comes from a bootstrap, and the second one assumes normal distributions. For servers with "
        "BBR alone, the shares are different (see [Influence of server and "
        "client](#influence-of-server-and-client))."
    )
    return Table("claims", "Claims of the paper", columns, tuple(rows), (note,))


def _both(first: str, second: str) -> str:
    """The comparison with both queues."""
    return first if first == second else f"25 packets: {first}. Queues of the paper's simulator: {second}"


def _claims() -> Iterator[tuple[str, str, Callable[[ResultSet], Answer | None]]]:
    """Section of the paper, claim, and what decides it."""
    theirs = [100 * row.mean / FORWARD_RATE for row in TABLE_II.values()]
    yield (
        "IV-A",
        f"Mean efficiency of the successful runs over {listed(TABLE_II)}: {_percentages(theirs)}",
        _links,
    )
    yield "IV-B", "Both the server and the client matter", _both_ends
    for name, role in BETTER_AS.items():
        other = "client" if role == "server" else "server"
        yield "IV-B", f"{name} performs well as a {role}", _performs(name, role, well=True)
        yield "IV-B", f"{name} does not perform well as a {other}", _performs(name, other, well=False)
    yield "IV-A", f"The client of {FAILING} fails over {WHERE}", _failing_client
    yield (
        "IV-C",
        f"Only servers with CUBIC or BBR exceed an efficiency of {100 * THRESHOLD:.0f} % over {LOSSY}",
        _algorithms,
    )
    pair = next(pair for pair, figure in OF_THE_PAPER.items() if figure == "Figure 7")
    yield (
        "IV-D",
        (
            f"A transfer from {pair.server} to {pair.client} over {pair.test_case} takes slightly more than "
            f"{TIME_OF_FIGURE_7} s"
        ),
        _figure_7,
    )


LOSSY = "satloss"


def _links(results: ResultSet) -> Answer | None:
    """The mean efficiency of each link, of the servers and clients that the paper measured, too."""
    cases = [case for case in results.manifest.test_cases if case.name in TABLE_II]
    shared = common(results)
    means = {case: mean for case in cases if (mean := scenario(shared, case).mean) is not None}
    if len(means) < 2:
        return None
    ours = [100 * mean / case.emulated.forward_rate for case, mean in means.items()]
    same_order = sorted(ours, reverse=True) == ours
    return Answer(
        f"{_percentages(ours)} over {listed(case.name for case in means)} for the {in_common(results)} that the paper "
        "also measured",
        f"{AGREES} on the order of the links" if same_order else DIFFERS,
    )


def _percentages(values: list[float]) -> str:
    return f"{listed(f'{value:.0f}' for value in values)} %"


def _both_ends(results: ResultSet) -> Answer | None:
    """Whether goodput depends on the server and on the client."""
    cases = results.manifest.test_cases
    shares = {case.name: share for case in cases if (share := with_both_intervals(results, case))}
    if not shares:
        return None
    mostly = [case.name for case in cases if case.name in shares and mostly_server(results, case)]
    told = listed(f"{share} over {name}" for name, share in shares.items())
    return Answer(
        f"The server's share of the variance is {told}",
        f"partly; over {listed(mostly)}, goodput depends mostly on the server" if mostly else AGREES,
    )


def _performs(name: str, role: str, *, well: bool) -> Callable[[ResultSet], Answer | None]:
    """Whether an implementation performs well, or not, in a role."""

    def measure(results: ResultSet) -> Answer | None:
        means_of = means_of_servers if role == "server" else means_of_clients
        reached = {
            case.name: share
            for case in results.manifest.test_cases
            if (share := of_the_best(means_of(results, case), name)) is not None
        }
        if not reached:
            return None
        ends = {
            case.name: bootstrapped_role(results, case, name, role)
            for case in results.manifest.test_cases
            if case.name in reached
        }
        return Answer(
            f"{_percentages([100 * share for share in reached.values()])} of the fastest {role} over {listed(reached)}",
            _verdicts(ends, well=well),
        )

    return measure


def _verdicts(ends: Mapping[str, tuple[float, float]], *, well: bool) -> str:
    """``agrees over terrestrial, undecided over sat``: by where the interval of the share of the fastest mean lies."""
    found: dict[str, list[str]] = {}
    for case, (low, high) in ends.items():
        decided = AGREES if (low >= WELL) is well else DIFFERS
        verdict = UNDECIDED if low < WELL <= high else decided
        found.setdefault(verdict, []).append(case)
    return ", ".join(f"{verdict} over {listed(cases)}" for verdict, cases in found.items())


def bootstrapped_role(results: ResultSet, case: TestCase, name: str, role: str) -> tuple[float, float]:
    """Ends of the 95 % interval of the share of the fastest mean: percentiles of a bootstrap over the partners.

    The fastest one is that of all partners: the fastest of each resample would be too fast where two are close.
    """
    means, partners = means_of_pairs(results, case, role)
    place = list(means).index(name)
    fastest = int(np.argmax([np.nanmean(each) for each in means.values()]))
    table = np.array(list(means.values()))
    drawn = np.random.default_rng(SEED).integers(0, len(partners), (RESAMPLES, len(partners)))
    resampled = np.nanmean(table[:, drawn], axis=2)
    low, high = np.quantile(resampled[place] / resampled[fastest], (0.025, 0.975))
    return float(low), float(high)


def means_of_pairs(results: ResultSet, case: TestCase, role: str) -> tuple[dict[str, list[float]], list[str]]:
    """Mean goodput of each implementation in a role with each partner, bit/s, and the partners.

    For servers, the partners are all clients; for clients, they are the servers that always succeeded.
    """
    manifest = results.manifest
    names, partners = (
        (manifest.servers, list(manifest.clients))
        if role == "server"
        else (manifest.clients, always_successful(results, case))
    )
    values: dict[tuple[str, str], list[float]] = {}
    for run in of_case(results, case):
        pair = (run.server, run.client) if role == "server" else (run.client, run.server)
        values.setdefault(pair, []).extend(known([run]))
    means = {
        name: [statistics.fmean(each) if (each := values.get((name, partner))) else math.nan for partner in partners]
        for name in names
    }
    return {name: each for name, each in means.items() if not all(map(math.isnan, each))}, partners


def of_the_best(means: Mapping[str, float], name: str) -> float | None:
    """Share of the largest mean that one of them reaches; None without it."""
    return means[name] / max(means.values()) if name in means else None


FAILING, WHERE = "neqo", "terrestrial"
"""The client that failed in the paper, and over which link."""


def _failing_client(results: ResultSet) -> Answer | None:
    runs = [run for run in results.results if (run.client, run.test_case) == (FAILING, WHERE)]
    if not runs:
        return None
    good = sum(run.verdict.outcome is Outcome.SUCCEEDED for run in runs)
    return Answer(
        f"{good} of {len(runs)} runs with this client succeeded", f"{DIFFERS}: it succeeds" if good else AGREES
    )


def _algorithms(results: ResultSet) -> Answer | None:
    """The congestion control algorithms that are fast in spite of loss."""
    case = find(results, LOSSY)
    if case is None or not (means := of_defaults(results, case)):
        return None
    fast = above(means, THRESHOLD * case.emulated.forward_rate)
    counts = listed(
        f"{len(fast[control])} of {len(found)} with {control}{_named(fast[control], len(found))}"
        for control, found in means.items()
    )
    without = [control for control in ("CUBIC", "BBR") if control in means and not fast[control]]
    if fast.get(SLOW):
        verdict = DIFFERS
    elif without:
        verdict = f"{AGREES}, but the mean of no server with {listed(without)} exceeds it either"
    else:
        verdict = AGREES
    return Answer(f"Servers whose mean exceeds it, with their default congestion control: {counts}", verdict)


def _named(some: list[str], count: int) -> str:
    """`` (quiche)``, if not all do."""
    return f" ({', '.join(some)})" if 0 < len(some) < count else ""


def _figure_7(results: ResultSet) -> Answer | None:
    """The times of the transfer that Figure 7 of the paper shows, with all seeds."""
    pair = next(pair for pair, figure in OF_THE_PAPER.items() if figure == "Figure 7")
    runs = [run for run in results.results if Pair(run.server, run.client, run.test_case) == pair]
    times = sorted(time for run in runs if (time := value_of(run, "completion_time")) is not None)
    if not times:
        return None
    seeds = len({run.repetition for run in runs})
    times_as_long = _range([time / TIME_OF_FIGURE_7 for time in (times[0], times[-1])])
    return Answer(
        f"{_range([times[0], times[-1]])} s ({counted(seeds, 'seed')})",
        AGREES if times[-1] / TIME_OF_FIGURE_7 - 1 < SAME else f"{DIFFERS}: {times_as_long} times as long",
    )


def _range(ends: list[float]) -> str:
    """``10.7 to 11.3``; ``10.7`` if both ends are the same."""
    return " to ".join(dict.fromkeys(f"{end:.1f}" for end in ends))
