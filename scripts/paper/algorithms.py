"""Which congestion control algorithms are fast over satloss: one criterion for default ones and for variants."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator, Mapping

from interop.model.emulated_link import loss_share
from interop.model.implementation import Implementation, Role
from interop.model.results import ResultSet, RunResult
from interop.model.test_case import TestCase
from interop.statistics.overview import THRESHOLD, family, marginals
from interop.statistics.samples import EFFICIENCY, GOODPUT, find, samples, value_of
from scripts.paper.acknowledgements import SERVER
from scripts.paper.data_set import seeds_in_words
from scripts.paper.goodput import known, of_case, with_timeouts
from scripts.paper.variants import ORDER, means_of_controls, with_known_controls
from scripts.paper.words import counted, listed

Means = Mapping[str, Mapping[str, float]]
"""Mean goodput of all runs, bit/s, by congestion control and server."""
WITH_UNDERFLOW = "CUBIC"
"""Congestion control of ``SERVER`` whose counter underflows."""


def of_defaults(results: ResultSet, case: TestCase) -> Means:
    """With the default congestion control of each server, and all clients."""
    implementations = {each.name: each for each in results.manifest.implementations}
    found: dict[str, dict[str, float]] = {}
    for server in results.manifest.servers:
        if values := known(run for run in of_case(results, case) if run.server == server):
            found.setdefault(_control(implementations.get(server)), {})[server] = statistics.fmean(values)
    return dict(sorted(found.items()))


def _control(implementation: Implementation | None) -> str:
    """Its default congestion control; Reno and NewReno are one."""
    return family(implementation).replace("NewReno", "Reno")


def of_variants(results: ResultSet, case: TestCase) -> Means:
    """With each congestion control of ``variants``, the fastest first."""
    means = means_of_controls(results, case)
    found = {control: {name: mean for (name, own), (mean, _) in means.items() if own == control} for control in ORDER}
    return {control: each for control, each in reversed(found.items()) if each}


def of_pairs(results: ResultSet, case: TestCase) -> Means:
    """Of each pair, with the default congestion control of its server; the name of a pair is that of both ends."""
    implementations = {each.name: each for each in results.manifest.implementations}
    runs: dict[tuple[str, str], list[float]] = {}
    for run in of_case(results, case):
        runs.setdefault((run.server, run.client), []).extend(known([run]))
    found: dict[str, dict[str, float]] = {}
    for (server, client), values in runs.items():
        if values:
            own = found.setdefault(_control(implementations.get(server)), {})
            own[f"{server} with {client}"] = statistics.fmean(values)
    return dict(sorted(found.items()))


FEW = 3
"""So many pairs are named."""


def pairs_in_words(means: Means, limit: float) -> str:
    """``42 of 42 pairs with BBR, 3 of 98 with CUBIC (…) and 0 of 84 with Reno``."""
    parts = list[str]()
    for control, found in above(means, limit).items():
        named = f" ({listed(found)})" if 0 < len(found) <= FEW else ""
        parts.append(f"{len(found)} of {len(means[control])}{'' if parts else ' pairs'} with {control}{named}")
    return listed(parts)


def _means_in_words(means: Means, limit: float, control: str) -> str:
    """``; quiche reaches 3.23 Mbit/s (16 %)``: the servers with a congestion control that exceed the limit."""
    told = [
        f"{name} reaches {mean / 1e6:.2f} Mbit/s ({100 * THRESHOLD * mean / limit:.0f} %)"
        for name, mean in means.get(control, {}).items()
        if mean > limit
    ]
    return f"; {listed(told)}" if told else ""


def above(means: Means, limit: float) -> dict[str, list[str]]:
    """The servers above a goodput, by congestion control."""
    return {control: [name for name, mean in each.items() if mean > limit] for control, each in means.items()}


def in_words(means: Means, limit: float, of: str, *, names: bool = True) -> str:
    """``3 of 3 servers with BBR (picoquic, tquic, lsquic), 0 of 7 with CUBIC and …``; ``of``: servers."""
    parts = list[str]()
    for control, found in above(means, limit).items():
        named = f" ({', '.join(found)})" if found and names else ""
        parts.append(f"{len(found)} of {len(means[control])}{'' if parts else f' {of}'} with {control}{named}")
    return listed(parts)


def algorithms(
    results: ResultSet, variants: ResultSet | None, corrected: ResultSet | None, longer: ResultSet | None = None
) -> Iterator[str]:
    """All servers over satloss, by one criterion (the paper's section IV-C), without and with the underflow.

    ``longer``: runs with the queue of the paper's simulator, over links with the names of those of ``results``.
    """
    case = find(results, "satloss")
    if case is None or not loss_share(case.emulated.forward_loss) or not of_defaults(results, case):
        return
    limit = THRESHOLD * case.emulated.forward_rate
    clients = counted(len(results.manifest.clients), "client")
    yield (
        f"The paper found that only servers with CUBIC or BBR exceed an efficiency of {100 * THRESHOLD:.0f} % over "
        f"`{case.name}`. We use one criterion: whether the mean efficiency of all runs of a server exceeds "
        f"{100 * THRESHOLD:.0f} % ({limit / 1e6:.2f} Mbit/s; arithmetic mean). For unsuccessful runs, goodput is the "
        "number of bytes that had arrived, divided by the client's run time. The following exceed "
        f"{100 * THRESHOLD:.0f} %:"
    )
    yield ""
    yield (
        f"- with the default congestion control algorithms and {clients}: "
        f"{in_words(of_defaults(results, case), limit, 'servers')}."
        f"{_single_runs(results, case, limit)}{_undecided(results, case)}"
    )
    yield (
        "- if pairs of a server and a client are counted instead of servers: "
        f"{pairs_in_words(of_pairs(results, case), limit)}."
    )
    if longer is not None and (other := find(longer, case.name)) is not None:
        seeds = seeds_in_words(sorted({run.repetition for run in longer.results}))
        yield (
            f"- with the [queue of the paper's simulator](#queue-of-the-papers-simulator) ({seeds}), instead of 25 "
            f"packets: {in_words(of_defaults(longer, other), limit, 'servers')}"
            f"{_means_in_words(of_defaults(longer, other), limit, 'CUBIC')}; "
            f"{pairs_in_words(of_pairs(longer, other), limit)}.{_undecided(longer, other)}"
            f"{_nearly(of_defaults(longer, other), limit)}"
        )
    if variants is not None and (chosen := of_variants(variants, case)):
        yield (
            "- with the congestion control algorithms of [Algorithm or implementation](#algorithm-or-implementation) "
            f"and {counted(len(variants.manifest.clients), 'client')}: {in_words(chosen, limit, 'implementations')}."
            f"{_undecided(with_known_controls(variants), case)}"
        )
    yield from _without_underflow(results, variants, corrected)
    yield ""
    yield (
        "All runs of a server use the same program, and the link loses the same packets in all runs with the same "
        "seed. The number of servers is therefore better evidence about a congestion control than the number of runs."
        f"{_by_chance(of_defaults(results, case), limit)}"
    )


NEARLY = 0.9
"""Share of the threshold from which on a mean is named although it does not exceed it."""


def _nearly(means: Means, limit: float) -> str:
    """Servers with ``SLOW`` that nearly exceed the limit, as a sentence; empty if there are none."""
    found = {name: mean for name, mean in means.get(SLOW, {}).items() if NEARLY * limit < mean <= limit}
    if not found:
        return ""
    told = listed(f"{name} reaches {100 * THRESHOLD * mean / limit:.1f} %" for name, mean in found.items())
    return f" With {SLOW}, {told}."


SLOW = "Reno"
"""The algorithm with which no server exceeds the threshold, according to the paper."""


def _by_chance(means: Means, limit: float) -> str:
    """How likely it is that the servers with BBR are those that exceed the limit, if the algorithm has no influence."""
    fast = {control: len(found) for control, found in above(means, limit).items() if found}
    if list(fast) != ["BBR"] or fast["BBR"] != len(means["BBR"]):
        return ""
    servers, chosen = sum(map(len, means.values())), fast["BBR"]
    return (
        f" If congestion control had no influence, exactly the servers with BBR ({chosen} of {servers}) would exceed "
        f"{100 * THRESHOLD:.0f} % with a probability of 1 / {math.comb(servers, chosen)} (Fisher's exact test)."
        f"{_of_the_paper(means, servers, chosen)}"
    )


def _of_the_paper(means: Means, servers: int, chosen: int) -> str:
    """The same for the grouping of the paper, as sentences."""
    fast = servers - len(means.get(SLOW, {}))
    chance = math.comb(fast, chosen) / math.comb(servers, chosen)
    return (
        f" We chose this grouping after we had seen the data. That none of the servers with {SLOW} exceeds it, as the "
        f"paper found, would have a probability of {chance:.2f}, so these servers alone do not confirm the paper's "
        "claim."
    )


def _single_runs(results: ResultSet, case: TestCase, limit: float) -> str:
    """Servers whose mean is not above the limit, although some runs are."""
    fast = {name for names in above(of_defaults(results, case), limit).values() for name in names}
    told = list[str]()
    for server in results.manifest.servers:
        runs = [run for run in of_case(results, case) if run.server == server]
        count = sum((value_of(run, GOODPUT) or 0.0) > limit for run in runs)
        if count and server not in fast:
            told.append(f"{server} ({count} of {counted(len(runs), 'run')})")
    return f" Single runs of {listed(told)} also exceed {100 * THRESHOLD:.0f} %." if told else ""


def undecided(results: ResultSet, case: TestCase) -> dict[str, tuple[float, float]]:
    """Servers whose interval of the efficiency includes the threshold, with its limits."""
    return {
        each.implementation: (each.low, each.high)
        for each in marginals(samples(with_timeouts(results), case.name, EFFICIENCY))
        if each.role is Role.SERVER and each.low is not None and each.high is not None
        if each.low <= THRESHOLD <= each.high
    }


def _undecided(results: ResultSet, case: TestCase) -> str:
    """That the data do not decide about some servers; empty if there are none."""
    names = list(undecided(results, case))
    if not names:
        return ""
    intervals = "interval of the mean efficiency" if len(names) == 1 else "intervals of the mean efficiencies"
    return (
        f" The 95 % confidence {intervals} of {listed(names)} {'includes' if len(names) == 1 else 'include'} "
        f"{100 * THRESHOLD:.0f} % ({'it is' if len(names) == 1 else 'they are'} of geometric means; see "
        "[Seeds](#seeds)), so the data do not show on which side "
        f"{'this server is' if len(names) == 1 else 'these servers are'}."
    )


def _undecided_in_short(results: ResultSet, case: TestCase) -> str:
    """The same with the limits of the intervals."""
    found = undecided(results, case)
    if not found:
        return ""
    told = listed(f"{name} ({100 * low:.1f} to {100 * high:.1f} %)" for name, (low, high) in found.items())
    verb = "interval includes" if len(found) == 1 else "intervals include"
    return f" The 95 % confidence {verb} {100 * THRESHOLD:.0f} % for {told}."


def without_underflow(
    results: ResultSet, variants: ResultSet | None, corrected: ResultSet | None
) -> dict[int, tuple[float, float]]:
    """Mean goodput of ``SERVER`` with and without the underflow, bit/s, by number of clients; with the same losses."""
    case = find(results, "satloss")
    found = dict[int, tuple[float, float]]()
    if corrected is None or case is None:
        return found
    server = f"{SERVER}:{WITH_UNDERFLOW.lower()}"
    for campaign, name in ((results, SERVER), (variants, server)):
        if campaign is None:
            continue
        both = [{_losses(run): run for run in of_case(campaign, case) if run.server == name},
                {_losses(run): run for run in of_case(corrected, case)}]  # fmt: skip
        own, other = (known(each[key] for key in both[0].keys() & both[1].keys()) for each in both)
        if other and own:
            found[len(campaign.manifest.clients)] = statistics.fmean(own), statistics.fmean(other)
    return found


def _losses(run: RunResult) -> tuple[str, int | None]:
    return run.client, run.evidence.seed


def _without_underflow(results: ResultSet, variants: ResultSet | None, corrected: ResultSet | None) -> Iterator[str]:
    found, case = without_underflow(results, variants, corrected), find(results, "satloss")
    if not found or case is None:
        return
    limit = THRESHOLD * case.emulated.forward_rate
    means = listed(
        f"{other / 1e6:.2f} instead of {own / 1e6:.2f} Mbit/s with {counted(clients, 'client')}"
        for clients, (own, other) in found.items()
    )
    chosen = _counted_without(variants, case, limit) if variants is not None else ""
    yield (
        f"- without the [underflow](#goodput-and-acknowledgements-over-satloss) of {SERVER}'s counter"
        f"{f': {chosen}. In' if chosen else ', in'} runs with the same losses, {SERVER} with {WITH_UNDERFLOW} then "
        f"reaches {means}."
    )


def _counted_without(variants: ResultSet, case: TestCase, limit: float) -> str:
    """How many variants with the same congestion control remain."""
    cubic = of_variants(variants, case).get(WITH_UNDERFLOW, {})
    others = above({WITH_UNDERFLOW: cubic}, limit)[WITH_UNDERFLOW]
    if SERVER not in others:
        return ""
    rest = [name for name in others if name != SERVER]
    named = f" ({', '.join(rest)})" if rest else ""
    return f"{len(rest)} of {counted(len(cubic), 'implementation')} with {WITH_UNDERFLOW}{named}"


def finding(
    results: ResultSet, variants: ResultSet | None, corrected: ResultSet | None, longer: ResultSet | None = None
) -> Iterator[str]:
    """The same counts, as an item of a list; nothing if no server exceeds the limit."""
    case = find(results, "satloss")
    if case is None or not loss_share(case.emulated.forward_loss):
        return
    limit = THRESHOLD * case.emulated.forward_rate
    defaults = of_defaults(results, case)
    if not any(above(defaults, limit).values()):
        return
    told = (
        f"- Over `{case.name}` with queues of {case.emulated.forward_queue} packets, the mean efficiency exceeds "
        f"{100 * THRESHOLD:.0f} % for {in_words(defaults, limit, 'servers', names=False)} as their default congestion "
        f"control.{_undecided_in_short(results, case)}"
    )
    if longer is not None and (other := find(longer, case.name)) is not None:
        means = of_defaults(longer, other)
        told += (
            f" With the queue of the paper's simulator, it exceeds {100 * THRESHOLD:.0f} % for "
            f"{in_words(means, limit, 'servers', names=False)}{_means_in_words(means, limit, 'CUBIC')} "
            f"({seeds_in_words(sorted({run.repetition for run in longer.results}))})."
            f"{_undecided_in_short(longer, other)}{_nearly(means, limit)}"
        )
    if variants is not None and (chosen := of_variants(variants, case)):
        told += (
            f" When we set the congestion control ourselves ({counted(len(variants.manifest.clients), 'client')}, "
            f"{seeds_in_words(sorted({run.repetition for run in of_case(variants, case)}))}, 25 packets), it exceeds "
            f"{100 * THRESHOLD:.0f} % for "
            f"{in_words(chosen, limit, 'implementations')}.{_undecided_in_short(with_known_controls(variants), case)}"
            f"{_slower(variants, results, corrected, limit)}"
        )
    yield f"{told} See [Servers and clients](#servers-and-clients)."


def _slower(variants: ResultSet, results: ResultSet, corrected: ResultSet | None, limit: float) -> str:
    """That the underflow alone lifts ``SERVER`` above the limit, if it does."""
    pairs = without_underflow(results, variants, corrected).get(len(variants.manifest.clients))
    if pairs is None or corrected is None or not pairs[0] > limit > pairs[1]:
        return ""
    seeds = seeds_in_words(sorted({run.repetition for run in corrected.results}))
    return (
        f" {SERVER} with {WITH_UNDERFLOW} exceeds {100 * THRESHOLD:.0f} % ({limit / 1e6:.2f} Mbit/s) only because a "
        f"counter underflows: it reaches {pairs[0] / 1e6:.2f} Mbit/s with the underflow and {pairs[1] / 1e6:.2f} "
        f"Mbit/s without it ({seeds})."
    )
