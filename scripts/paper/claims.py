"""What the paper concludes, and whether our measurements lead to the same conclusion."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from interop.model.outcomes import Outcome
from interop.model.results import ResultSet
from interop.model.test_case import TestCase
from interop.report.table import Column, Table
from interop.statistics.overview import THRESHOLD, scenario
from interop.statistics.samples import find, value_of
from scripts.paper.algorithms import above, of_defaults
from scripts.paper.goodput import mean_of
from scripts.paper.influence import in_words as share_in_words
from scripts.paper.influence import means_of_servers, mostly_server, share_of_server
from scripts.paper.matrix import always_successful
from scripts.paper.packets import OF_THE_PAPER, Pair
from scripts.paper.packets import run_of as run_of_pair
from scripts.paper.published import BETTER_AS, TABLE_II, TIME_OF_FIGURE_7
from scripts.paper.words import listed

SLOW_ALGORITHM = "Reno"
"""Of no server that exceeds ``THRESHOLD`` over a link with loss, according to the paper."""
AGREES, DIFFERS = "agrees", "differs"
WELL = 0.9
"""Share of the largest mean from which on an implementation counts as performing well."""
SAME = 0.1
"""Relative difference of two times that the table calls the same."""

Row = tuple[str, str, str, str]
"""Section of the paper, its claim, our measurement, and whether both agree."""


def claims(results: ResultSet) -> Table:
    """One row for each claim about implementations and links that we measure."""
    columns = (Column("section"), Column("paper"), Column("this page"), Column("comparison"))
    rows = (*_links(results), *_both_ends(results), *_roles(results), *_neqo(results),
            *_algorithms(results), *_figure_7(results))  # fmt: skip
    note = (
        "*Section* is the section of the paper. An implementation performs well here if its mean goodput is at least "
        f"{100 * WELL:.0f} % of that of the fastest one; the paper gives no definition. For servers, the means are "
        "over all runs; for clients, they are over the runs of the servers that always succeeded over the link. All "
        "rows use our queues of 25 packets. With the queue of the paper's simulator, goodput differs (see [Queue of "
        "the paper's simulator](#queue-of-the-papers-simulator))."
    )
    return Table("claims", "Claims of the paper", columns, rows, (note,))


def _links(results: ResultSet) -> Iterator[Row]:
    """The mean efficiency of each link."""
    cases = [case for case in results.manifest.test_cases if case.name in TABLE_II]
    means = {case: mean for case in cases if (mean := scenario(results, case).mean) is not None}
    if len(means) < 2:
        return
    ours = [100 * mean / case.emulated.forward_rate for case, mean in means.items()]
    theirs = [100 * TABLE_II[case.name].mean / case.emulated.forward_rate for case in means]
    names = listed(case.name for case in means)
    same_order = sorted(ours, reverse=True) == ours
    yield (
        "IV-A",
        f"Mean efficiency of the successful runs over {names}: {_percentages(theirs)}",
        _percentages(ours),
        f"{AGREES} on the order of the links" if same_order else DIFFERS,
    )


def _percentages(values: list[float]) -> str:
    return f"{listed(f'{value:.0f}' for value in values)} %"


def _both_ends(results: ResultSet) -> Iterator[Row]:
    """Whether goodput depends on the server and on the client."""
    shares = {
        case.name: share
        for case in results.manifest.test_cases
        if (share := share_of_server(results, case)) is not None
    }
    if not shares:
        return
    mostly = [case.name for case in results.manifest.test_cases if case.name in shares and mostly_server(results, case)]
    told = listed(f"{share_in_words(share)} over {name}" for name, share in shares.items())
    yield (
        "IV-B",
        "Both the server and the client matter",
        f"The server's share of the variance is {told}",
        f"partly: over {listed(mostly)}, mostly the server; single pairs can differ much" if mostly else AGREES,
    )


def _roles(results: ResultSet) -> Iterator[Row]:
    """Implementations that are faster than others in one role only."""
    for name, role in BETTER_AS.items():
        if not {name} <= {*results.manifest.servers} & {*results.manifest.clients}:
            continue
        other = "client" if role == "server" else "server"
        reached = {
            case.name: {"server": as_server, "client": as_client}
            for case in results.manifest.test_cases
            if (as_server := of_the_best(means_of_servers(results, case), name)) is not None
            if (as_client := of_the_best(means_of_clients(results, case), name)) is not None
        }
        if not reached:
            continue
        agreeing = [case for case, each in reached.items() if each[role] >= WELL > each[other]]
        ours = "; ".join(
            f"as a {place}: {_percentages([100 * each[place] for each in reached.values()])} of the fastest {place}"
            for place in ("server", "client")
        )
        yield (
            "IV-B",
            f"{name} performs well as a {role}, but not as a {other}",
            f"Mean goodput over {listed(reached)}, {ours}",
            AGREES if len(agreeing) == len(reached) else f"{AGREES} over {listed(agreeing)}" if agreeing else DIFFERS,
        )


def means_of_clients(results: ResultSet, case: TestCase) -> dict[str, float]:
    """Mean goodput of each client with the servers that always succeeded, bit/s."""
    servers = always_successful(results, case)
    found = {name: mean_of(results, case, servers, client=name) for name in results.manifest.clients}
    return {name: mean for name, mean in found.items() if mean is not None}


def of_the_best(means: Mapping[str, float], name: str) -> float | None:
    """Share of the largest mean that one of them reaches; None without it."""
    return means[name] / max(means.values()) if name in means else None


def _neqo(results: ResultSet) -> Iterator[Row]:
    """The client that failed in the paper."""
    client, test_case = "neqo", "terrestrial"
    runs = [run for run in results.results if (run.client, run.test_case) == (client, test_case)]
    if runs:
        good = sum(run.verdict.outcome is Outcome.SUCCEEDED for run in runs)
        yield (
            "IV-A",
            f"The client of {client} fails over {test_case}",
            f"{good} of {len(runs)} runs with this client succeeded",
            f"{DIFFERS}: it succeeds" if good else AGREES,
        )


def _algorithms(results: ResultSet) -> Iterator[Row]:
    """The congestion control algorithms that are fast in spite of loss."""
    case = find(results, "satloss")
    if case is None or not (means := of_defaults(results, case)):
        return
    fast = above(means, THRESHOLD * case.emulated.forward_rate)
    counts = listed(f"{len(fast[control])} of {len(found)} with {control}" for control, found in means.items())
    without = [control for control in ("CUBIC", "BBR") if control in means and not fast[control]]
    if fast.get(SLOW_ALGORITHM):
        verdict = DIFFERS
    elif without:
        verdict = f"{AGREES}, but no server with {listed(without)} exceeds it either"
    else:
        verdict = AGREES
    yield (
        "IV-C",
        f"Only servers with CUBIC or BBR exceed an efficiency of {100 * THRESHOLD:.0f} % over {case.name}",
        f"Servers whose mean exceeds it, with their default congestion control: {counts}",
        verdict,
    )


def _figure_7(results: ResultSet) -> Iterator[Row]:
    """The time of the transfer that Figure 7 of the paper shows."""
    pair = next(pair for pair, figure in OF_THE_PAPER.items() if figure == "Figure 7")
    run = run_of_pair(results, pair)
    time = value_of(run, "completion_time") if run else None
    if time is not None:
        yield (
            "IV-D",
            f"A transfer from {_ends(pair)} over {pair.test_case} takes slightly more than {TIME_OF_FIGURE_7} s",
            f"{time:.1f} s (seed 1)",
            AGREES if time / TIME_OF_FIGURE_7 - 1 < SAME else f"{DIFFERS}: {time / TIME_OF_FIGURE_7:.1f} times as long",
        )


def _ends(pair: Pair) -> str:
    return f"{pair.server} to {pair.client}"
