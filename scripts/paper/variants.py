"""Algorithm or implementation: congestion control algorithms of the same servers."""

from __future__ import annotations

import math
import re
import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from interop.model.emulated_link import loss_share
from interop.model.outcomes import Outcome
from interop.model.results import ResultSet, RunResult
from interop.model.test_case import TestCase
from interop.report.table import Column, Table, Unit
from interop.statistics.intervals import Mean, of_repetitions
from interop.statistics.overview import THRESHOLD
from interop.statistics.samples import GOODPUT, samples, value_of
from scripts.paper.crossed import FEWEST, Crossed, Difference, decompose_crossed, with_several_algorithms
from scripts.paper.data_set import seeds_in_words, seeds_on_another_machine
from scripts.paper.goodput import known, of_case, with_timeouts
from scripts.paper.lines import Line, rendered
from scripts.paper.words import listed, part_of

CONTROLS: Mapping[str, str] = {"reno": "Reno", "newreno": "Reno", "cubic": "CUBIC", "bbr": "BBR"}
"""Variants of servers that several implementations have, and their congestion control."""
FURTHER_BBR: Mapping[str, tuple[str, str]] = {"picoquic:bbr1": ("1", "bbr1.c")}
"""A second BBR of an implementation: its version and the file of its source code that says so."""
UNDERFLOWING = "msquic:cubic"
"""The variant whose counter of acknowledged bytes underflows (``acknowledgements``)."""
ORDER = tuple(dict.fromkeys(CONTROLS.values()))
FEWEST_IN_WORDS = {3: "three"}[FEWEST]
"""With so few implementations, the interval of a difference is not informative."""


def with_known_controls(results: ResultSet) -> ResultSet:
    """The results of the servers whose variant is in ``CONTROLS``."""
    servers = tuple(name for name in results.manifest.servers if name.partition(":")[2] in CONTROLS)
    kept = tuple(each for each in results.results if each.server in servers)
    return replace(results, results=kept, manifest=replace(results.manifest, servers=servers))


def without_the_underflow(results: ResultSet, corrected: ResultSet | None) -> ResultSet:
    """The results, with corrected runs of ``UNDERFLOWING`` in place of those with the same client and losses.

    Its runs with other losses are left out where there are corrected ones.
    """
    by_losses = {_losses(run): run for run in corrected.results} if corrected is not None else {}
    pairs = {(run.test_case, run.client) for run in by_losses.values()}
    kept = list[RunResult]()
    for run in results.results:
        if run.server != UNDERFLOWING or (run.test_case, run.client) not in pairs:
            kept.append(run)
        elif _losses(run) in by_losses:
            kept.append(replace(by_losses[_losses(run)], server=run.server, repetition=run.repetition))
    return replace(results, results=tuple(kept))


def _losses(run: RunResult) -> tuple[str, str, int | None]:
    return run.test_case, run.client, run.evidence.seed


def algorithm_or_implementation(
    results: ResultSet, figures: Sequence[Line], corrected: ResultSet | None = None
) -> Iterator[Line]:
    """What changes with the congestion control of a server, and what with its implementation.

    ``corrected``: runs of msquic without the underflow.
    """
    yield "## Algorithm or implementation"
    yield ""
    yield (
        "This section compares servers with different congestion control algorithms, each with the clients "
        f"{listed(results.manifest.clients)}. "
        "Variants select the congestion control and nothing else, but even selecting the default can change goodput "
        "(see [Sensitivity to the delay](#sensitivity-to-the-delay)). For runs that timed out, goodput is the number "
        "of bytes that had arrived, divided by the client's run time; in the tables, mean values that include such "
        "runs are marked with T. The figures do not show this mark."
    )
    yield ""
    yield f"{_seeds(results)}{_left_out(results)} {_versions_in_words(results)}"
    yield ""
    yield from figures
    yield from shares(results)
    yield from conclusion(results)
    yield ""
    table = robustness(results, corrected)
    yield from rendered(table)
    yield from uncertain(table)
    for case in results.manifest.test_cases:
        yield from _of_case(results, case, corrected)
    yield (
        "picoquic's CUBIC hardly slows down if the link loses single packets: it reduces its window only if a smoothed "
        "loss rate exceeds a threshold (`picoquic_hystart_loss_test` in its `cubic.c`). CUBIC as specified in [RFC "
        "9438](https://www.rfc-editor.org/rfc/rfc9438#section-4.6) reduces its window after every loss."
    )


def _number_of_seeds(results: ResultSet) -> str:
    count = max((case.repetitions for case in results.manifest.test_cases), default=0)
    return "one seed" if count == 1 else f"{count} seeds"


def _seeds(results: ResultSet, case: TestCase | None = None) -> str:
    """How many seeds there are; ``case``: of one link only."""
    cases = results.manifest.test_cases if case is None else (case,)
    lossy = [each.name for each in cases if loss_share(each.emulated.forward_loss)]
    shared = f"; over `{lossy[0]}`, all pairs with the same seed share one sequence of losses" if lossy else ""
    return f"These runs have {_number_of_seeds(results)}{shared}.{_another_machine(results)}"


def _another_machine(results: ResultSet) -> str:
    """The seeds that were measured on another machine than the first one, as a sentence; or nothing."""
    seeds = seeds_on_another_machine(results)
    return f" The runs with {seeds_in_words(seeds)} took place on another machine." if seeds else ""


def _left_out(results: ResultSet) -> str:
    """Variants that were measured and are not compared, and why."""
    shown = with_known_controls(results)
    others = [name for name in results.manifest.servers if name not in shown.manifest.servers]
    if not others:
        return ""
    names = [name for name in others if name not in FURTHER_BBR]
    pairs, compared = (len({(run.server, run.client) for run in each.results}) for each in (results, shown))
    told = f" This section compares {compared} of the {pairs} pairs of the campaign."
    if names:
        told += (
            f" It omits {listed(names)}, because no other implementation has "
            f"{'this algorithm' if len(names) == 1 else 'these algorithms'}."
        )
    for name, (version, source) in FURTHER_BBR.items():
        if name in others:
            implementation = name.partition(":")[0]
            told += (
                f" {name} is {implementation} with version {version} of BBR (`{source}`). Each implementation should "
                f"have only one BBR, so {implementation}'s BBR is {name} in the subset *{OF_VERSION_1}*, and "
                f"{implementation}:bbr everywhere else."
            )
    return told


def versions_of_bbr(results: ResultSet) -> dict[str, str]:
    """The version of BBR of each implementation that has it and whose source names it."""
    with_bbr = {name.partition(":")[0]: name for name in results.manifest.servers if name.endswith(":bbr")}
    sources = {
        each.name: each.congestion_control.source
        for each in results.manifest.implementations
        if each.congestion_control
    }
    return {name: found[1] for name, full in with_bbr.items() if (found := VERSION.search(sources.get(full, "")))}


def _versions_in_words(results: ResultSet) -> str:
    """BBR is not one algorithm: its versions, from the sources that the data set names."""
    versions = versions_of_bbr(results)
    with_bbr = [name.partition(":")[0] for name in results.manifest.servers if name.endswith(":bbr")]
    unknown = [name for name in with_bbr if name not in versions]
    told = [
        f"{listed(names)} {'implements' if len(names) == 1 else 'implement'} version {version}"
        for version in sorted({*versions.values()})
        for names in [[name for name in with_bbr if versions.get(name) == version]]
    ]
    told += [f"the data set does not name the version of {listed(unknown)}"] if unknown else []
    return (
        "BBR has several versions, which react differently to loss; this section treats them as one algorithm. Here, "
        f"{'; '.join(told)}."
        if told
        else ""
    )


VERSION = re.compile(r"its BBR is version (\d)")
"""In the sources of ``implementations.json``."""


def _of_case(results: ResultSet, case: TestCase, corrected: ResultSet | None) -> Iterator[Line]:
    means = means_of_controls(results, case)
    names = list(dict.fromkeys(name for name, _ in means))
    factors = [(slower, faster, factors_of(results, case, slower, faster)) for slower, faster in pairwise(ORDER)]
    columns = (
        Column("server"), *(Column(f"{control} [Mbit/s]") for control in ORDER),
        *(Column(f"{faster} / {slower}") for slower, faster, _ in factors),
    )  # fmt: skip
    rows = [
        (
            name,
            *(_mean_in_words(means.get((name, control))) for control in ORDER),
            *(f"{found[name]:.1f}" if name in found else "" for _, _, found in factors),
        )
        for name in names
    ]
    note = "Goodput is the arithmetic mean over the clients; the factors are geometric means over the clients."
    yield from rendered(
        Table("controls", f"Congestion control algorithms over {case.name}", columns, tuple(rows), (note,))
    )
    for slower, faster, found in factors:
        ratio = of_repetitions(list(found.values()))
        if ratio is not None and ratio.low is not None and ratio.high is not None:
            yield (
                f"- Switching from {slower} to {faster} multiplies the goodput of an implementation by "
                f"{ratio.value:.1f} (geometric mean of {ratio.count} implementations; {INTERVAL}{ratio.low:.1f} to "
                f"{ratio.high:.1f}). "
                f"{_without_one_factor(found)}{_corrected_factor(results, case, corrected, slower, faster)}"
            )
    yield from _ratios(means)
    yield from _above_threshold(means, case)
    yield from _drops(results, case)
    yield ""


def _without_one_factor(found: Mapping[str, float]) -> str:
    """Which implementation changes the mean of the factors most, in each direction."""
    without = {
        name: statistics.geometric_mean([value for other, value in found.items() if other != name]) for name in found
    }
    return f"If one implementation is left out, this factor is {_least_and_most(without, 1)}."


def _corrected_factor(results: ResultSet, case: TestCase, corrected: ResultSet | None, slower: str, faster: str) -> str:
    """The factor without the underflow; empty if it is the same."""
    ratio = factor_without_the_underflow(results, case, corrected, slower, faster)
    if not ratio or corrected is None:
        return ""
    return (
        f" Without the underflow of msquic's counter, it is {_with_limits(ratio, '')}; these runs of msquic have "
        f"{_seeds_of(corrected)}."
    )


def _seeds_of(results: ResultSet) -> str:
    """``seed 1 only``."""
    seeds = sorted({run.repetition for run in results.results})
    return f"{seeds_in_words(seeds)}{' only' if len(seeds) == 1 else ''}"


def factor_without_the_underflow(
    results: ResultSet, case: TestCase, corrected: ResultSet | None, slower: str, faster: str
) -> Mean | None:
    """Over the implementations; None if the underflow does not change it."""
    found = factors_of(results, case, slower, faster)
    without = factors_of(without_the_underflow(results, corrected), case, slower, faster)
    return of_repetitions(list(without.values())) if without != found else None


# ---- shares of the variance -----------------------------------------------------------------


Cell = tuple[str, str, str]
"""Implementation, congestion control and client."""


def crossed(results: ResultSet, case: TestCase) -> Crossed | None:
    """Shares of implementation and congestion control."""
    return decompose_crossed(cells_of(results, case))


def cells_of(results: ResultSet, case: TestCase) -> dict[Cell, float]:
    """Each pair counts once, with the mean of its logarithms."""
    return {
        (name, CONTROLS[variant], client): value
        for (name, variant, client), value in _logarithms(with_known_controls(results), case).items()
    }


def further_bbr(results: ResultSet, case: TestCase, version: str) -> dict[Cell, float]:
    """The same of ``FURTHER_BBR`` with this version, as the BBR of its implementation."""
    return {
        (name, "BBR", client): value
        for (name, variant, client), value in _logarithms(results, case).items()
        if FURTHER_BBR.get(f"{name}:{variant}", ("",))[0] == version
    }


def _logarithms(results: ResultSet, case: TestCase) -> dict[Cell, float]:
    """By implementation, variant and client."""
    found = {}
    for sample in samples(with_timeouts(results), case.name, GOODPUT):
        name, _, variant = sample.server.partition(":")
        if sample.values and min(sample.values) > 0:
            found[name, variant, sample.client] = statistics.fmean(map(math.log, sample.values))
    return found


def _with_all(cells: Mapping[Cell, float]) -> dict[Cell, float]:
    """Of implementations that have all algorithms."""
    found: dict[str, set[str]] = {}
    for name, control, _ in cells:
        found.setdefault(name, set()).add(control)
    return {key: value for key, value in cells.items() if len(found[key[0]]) == len(ORDER)}


def _without(cells: Mapping[Cell, float], name: str, control: str) -> dict[Cell, float]:
    return {key: value for key, value in cells.items() if key[:2] != (name, control)}


OF_VERSION_1 = "BBR version 1 only"
NOT_AS_SPECIFIED = ("picoquic", "quiche", "msquic")
"""Implementations whose CUBIC does not reduce its window after every loss, or grows faster than CUBIC."""


@dataclass(frozen=True)
class _Further:
    """What a selection needs beside the cells of all runs."""

    versions: Mapping[str, str]
    """Of the BBR that each implementation has in all other selections."""
    bbr: Mapping[Cell, float]
    """Cells of further BBRs of version 1."""
    corrected: Mapping[Cell, float]
    """All cells, without the underflow."""


SELECTIONS: Mapping[str, Callable[[Mapping[Cell, float], _Further], dict[Cell, float]]] = {
    "implementations with all three algorithms": lambda cells, _: _with_all(cells),
    "Reno and CUBIC only": lambda cells, _: {key: value for key, value in cells.items() if key[1] != "BBR"},
    OF_VERSION_1: lambda cells, further: {
        **{key: value for key, value in cells.items() if key[1] != "BBR" or further.versions.get(key[0]) == "1"},
        **further.bbr,
    },
    "without msquic:bbr": lambda cells, _: _without(cells, "msquic", "BBR"),
    "msquic:cubic without the underflow": lambda _, further: dict(further.corrected),
    "without picoquic:cubic": lambda cells, _: _without(cells, "picoquic", "CUBIC"),
    "without CUBIC of picoquic, quiche and msquic": lambda cells, _: {
        key: value for key, value in cells.items() if key[1] != "CUBIC" or key[0] not in NOT_AS_SPECIFIED
    },
}
"""Subsets of the runs, for which the report computes the difference of the shares again."""


def including_0(table: Table) -> tuple[int, int]:
    """In how many rows of ``robustness`` the interval includes 0, and how many have an informative interval."""
    ends = [(row[4], row[5]) for row in table.rows if isinstance(row[2], int) and row[2] > FEWEST]
    known = [(low, high) for low, high in ends if isinstance(low, float) and isinstance(high, float)]
    return sum(low <= 0 <= high for low, high in known), len(known)


def uncertain(table: Table) -> Iterator[str]:
    """In how many rows of ``robustness`` it is open which share is larger."""
    number, rows = including_0(table)
    if rows:
        yield (
            f"Of the {rows} rows with more than {FEWEST_IN_WORDS} implementations, {number} "
            f"{'has' if number == 1 else 'have'} a confidence interval that includes 0: in these subsets, the data do "
            "not show which share is larger."
        )
        yield ""


ALL_RUNS = "all runs"


def subsets(results: ResultSet, corrected: ResultSet | None = None) -> Iterator[tuple[str, str, dict[Cell, float]]]:
    """Test case, name and cells of all runs and of each subset that differs from the others.

    ``corrected``: runs of msquic without the underflow.
    """
    versions = versions_of_bbr(results)
    for case in results.manifest.test_cases:
        every = cells_of(results, case)
        without_underflow = cells_of(without_the_underflow(results, corrected), case)
        further = _Further(versions, further_bbr(results, case, "1"), without_underflow)
        known = [with_several_algorithms(every)]
        yield case.name, ALL_RUNS, known[0]
        for name, select in SELECTIONS.items():
            cells = with_several_algorithms(select(every, further))
            if cells not in known:
                known.append(cells)
                yield case.name, name, cells


def robustness(results: ResultSet, corrected: ResultSet | None = None) -> Table:
    """The difference of the shares in subsets of the runs; those that are all runs, or another subset, are left out.

    ``corrected``: runs of msquic without the underflow.
    """
    columns = (
        Column("test case"), Column("subset"), Column("implementations", Unit.COUNT),
        Column("difference", Unit.SHARE, 0), Column("low", Unit.SHARE, 0), Column("high", Unit.SHARE, 0),
        Column("difference, interaction as implementation", Unit.SHARE, 0),
    )  # fmt: skip
    rows = list[tuple[float | int | str | None, ...]]()
    for case, name, cells in subsets(results, corrected):
        if name == ALL_RUNS:
            continue
        count, found = len({key[0] for key in cells}), decompose_crossed(cells)
        each = found.difference if found else None
        numbers = (each.value, each.low, each.high) if each else (None, None, None)
        rows.append((case, name, count, *numbers, found.with_interaction.value if found else None))
    note = (
        "*Difference* is defined as in the table above. Implementations with only one algorithm in a subset are "
        "omitted. A cell is empty if the model cannot be solved without one of the implementations. With only "
        f"{FEWEST_IN_WORDS} implementations, the interval is not informative. The CUBIC of picoquic and quiche does "
        "not reduce its window after every loss, and msquic's grows too fast because its counter underflows."
    )
    return Table("robustness", "Difference of the shares in subsets of the runs", columns, tuple(rows), (note,))


def of_cases(results: ResultSet) -> dict[str, Crossed]:
    """By test case, where an interval is possible."""
    return {case.name: each for case in results.manifest.test_cases if (each := crossed(results, case)) is not None}


def shares(results: ResultSet) -> Iterator[str]:
    """How much of the variance is due to each source, and how sure the difference of two shares is."""
    found = of_cases(results)
    if not found:
        return
    columns = (
        Column("test case"), Column("implementation", Unit.SHARE, 0), Column("congestion control", Unit.SHARE, 0),
        Column("interaction", Unit.SHARE, 0), Column("client", Unit.SHARE, 0), Column("rest", Unit.SHARE, 0),
    )  # fmt: skip
    rows = [tuple[str | float, ...]((case, *each.shares.values())) for case, each in found.items()]
    implementations = len(next(iter(found.values())).difference.without)
    notes = (
        (
            f"The table shows variance components of the logarithm of goodput, for the {implementations} "
            "implementations with at least two congestion control algorithms."
        ),
        (
            "*Congestion control* is the average effect of an algorithm over all implementations, and *implementation* "
            "is the average effect of an implementation over all algorithms. *Interaction* is what these two averages "
            "do not explain: for example, switching from Reno to CUBIC affects picoquic far more than other "
            "implementations. The three algorithms are fixed, so the results do not extend to other algorithms. "
            f"{AT_THE_LIMIT}"
        ),
    )
    title = "Sources of the variance with different congestion control algorithms"
    yield from rendered(Table("crossed", title, columns, tuple(rows), notes))
    yield from rendered(_differences(found))


def _differences(found: Mapping[str, Crossed]) -> Table:
    columns = (
        Column("test case"), Column("interaction"), Column("difference", Unit.SHARE, 0), Column("low", Unit.SHARE, 0),
        Column("high", Unit.SHARE, 0), Column("without one implementation"),
    )  # fmt: skip
    rows = [
        (case, counts, each.value, each.low, each.high, _least_and_most(each.without, 0, 100))
        for case, both in found.items()
        for counts, each in (
            ("counts as neither", both.difference), ("counts as implementation", both.with_interaction)
        )
    ]  # fmt: skip
    notes = (
        (
            "*Low* and *high* are the limits of the 95 % confidence interval, generalized to other implementations "
            "with these algorithms. They come from a jackknife that leaves out one implementation at a time, with all "
            "its runs. Differences are rounded after the subtraction, so they can differ by 1 from those of the "
            "rounded shares."
        ),
        "The last column shows the smallest and the largest difference if one implementation is left out.",
    )
    title = "Share of the implementation minus share of the congestion control"
    return Table("difference", title, columns, tuple(rows), notes)


def _least_and_most(without: Mapping[str, float], digits: int, times: float = 1) -> str:
    """``1.2 (without quinn) to 1.6 (without picoquic)``."""
    names = (choose(without, key=without.__getitem__) for choose in (min, max))
    return " to ".join(f"{times * without[name]:.{digits}f} (without {name})" for name in names)


def conclusion(results: ResultSet) -> Iterator[str]:
    """What the intervals of the difference allow to say, for each test case."""
    for case, found in of_cases(results).items():
        yield (
            f"- Over `{case}`, {_shares_in_words(found)} The implementation's share minus that of the congestion "
            f"control is {_points(found.difference)} percentage points (95 % confidence interval "
            f"{_limits(found.difference)}). {_larger(found.difference)} If the interaction counts as part of the "
            f"implementation, the difference is {_points(found.with_interaction)} percentage points "
            f"({_limits(found.with_interaction)}). {_larger(found.with_interaction)}{_too_narrow(found)}"
        )


AT_THE_LIMIT = "A share of 0 % is the lower limit of the estimator, and does not mean that there is no effect."


def _shares_in_words(found: Crossed) -> str:
    """``the implementation accounts for 61 % of the variance, the congestion control for 10 % and …``."""
    own, other, both, *_ = (f"{100 * share:.0f} %" for share in found.shares.values())
    return (
        f"the implementation accounts for {own} of the variance, the congestion control for {other}, and their "
        f"interaction for {both}."
    )


def finding(results: ResultSet, corrected: ResultSet | None = None) -> Iterator[str]:
    """How much algorithms and implementations change over each link, and which share is larger, as items of a list.

    ``corrected``: runs of msquic without the underflow.
    """
    cases = of_cases(results)
    for case in results.manifest.test_cases:
        found = cases.get(case.name)
        if found is None:
            continue
        changes = list[str]()
        for slower, faster in pairwise(ORDER):
            ratio = of_repetitions(list(factors_of(results, case, slower, faster).values()))
            if ratio is not None:
                what, name = ("it", "") if changes else ("the goodput of an implementation", INTERVAL)
                fixed = factor_without_the_underflow(results, case, corrected, slower, faster)
                without = (
                    f", or by {_with_limits(fixed, '')} without the underflow of msquic's counter "
                    f"({_seeds_of(corrected)})"
                    if fixed and corrected
                    else _without_msquic(results, case, corrected, slower, faster)
                )
                changes.append(
                    f"switching from {slower} to {faster} multiplies {what} by "
                    f"{_with_limits(ratio, name, check=True)}{without}"
                )
        spread = [ratio for ratio, _ in fastest_over_slowest(means_of_controls(results, case)).values()]
        within = f" to {max(spread):.1f}" if len(spread) > 1 else ""
        at_the_limit = f" {AT_THE_LIMIT}" if min(list(found.shares.values())[:3]) == 0 else ""
        yield (
            f"- Over `{case.name}`, {', and '.join(changes)}. With the same congestion control, the goodput of the "
            f"fastest implementation is {min(spread):.1f}{within} times that of the slowest (arithmetic means). Over "
            f"all these runs, {_shares_in_words(found)}{at_the_limit} The implementation's share minus that of the "
            f"congestion control is {_points(found.difference)} percentage points (95 % confidence interval "
            f"{_limits(found.difference)}).{_how_sure(results, case.name, found, corrected)}{_too_narrow(found)} "
            f"{_seeds(results, case)} See [Algorithm or implementation](#algorithm-or-implementation)."
        )


def _without_msquic(results: ResultSet, case: TestCase, corrected: ResultSet | None, slower: str, faster: str) -> str:
    """The factor without msquic over a link on which it was not measured without the underflow; or nothing."""
    found = factors_of(results, case, slower, faster)
    name, _, variant = UNDERFLOWING.partition(":")
    measured = {run.test_case for run in corrected.results} if corrected is not None else set[str]()
    if corrected is None or case.name in measured or name not in found or CONTROLS[variant] not in (slower, faster):
        return ""
    ratio = of_repetitions([value for other, value in found.items() if other != name])
    return (
        f", or by {_with_limits(ratio, '', check=True)} without {name}, whose counter underflows with "
        f"{CONTROLS[variant]}"
        if ratio
        else ""
    )


def _how_sure(results: ResultSet, case: str, found: Crossed, corrected: ResultSet | None) -> str:
    """Whether the interval includes 0 for all runs, and if it does not, with which other choices it does."""
    if found.difference.low <= 0 <= found.difference.high:
        return f" {_larger(found.difference)}"
    table = robustness(results, corrected)
    number, rows = including_0(replace(table, rows=tuple(row for row in table.rows if row[0] == case)))
    doubts = list[str]()
    if found.with_interaction.low <= 0 <= found.with_interaction.high:
        doubts.append(f"if the interaction counts as part of the implementation ({_limits(found.with_interaction)})")
    if number:
        doubts.append(
            f"in {part_of(number, rows, 'subset')} of the runs that {'contains' if rows == 1 else 'contain'} more than "
            f"{FEWEST_IN_WORDS} implementations"
        )
    if not doubts:
        return f" {_larger(found.difference)}"
    return (
        f" This interval excludes 0. However, it includes 0 {', and '.join(doubts)}. The ranking of the two shares is "
        f"therefore not robust.{_same_sign(table, case)}"
    )


def _same_sign(table: Table, case: str) -> str:
    """That the difference has the same sign in all subsets, as a sentence; empty if it has not."""
    values = [row[3] for row in table.rows if row[0] == case and isinstance(row[3], float)]
    known = [value for value in values if isinstance(value, float)]
    if not known or min(known) <= 0 <= max(known):
        return ""
    return f" In all subsets, the difference is {'positive' if known[0] > 0 else 'negative'}."


INTERVAL = "95 % confidence interval "
"""Before its limits, where an item has the first one."""


def _with_limits(ratio: Mean, name: str, *, check: bool = False) -> str:
    """``0.9 (0.5 to 1.5)``; ``check``: say if the interval includes 1."""
    if ratio.low is None or ratio.high is None:
        return f"{ratio.value:.1f}"
    includes = ", which includes 1" if check and ratio.low <= 1 <= ratio.high else ""
    return f"{ratio.value:.1f} ({name}{ratio.low:.1f} to {ratio.high:.1f}{includes})"


def _too_narrow(found: Crossed) -> str:
    """That the jackknife does not see how uncertain a share at its lower limit is, as a sentence; or nothing."""
    sources = [source.replace("algorithm", "congestion control") for source in found.always_at_zero]
    sources = [source for source in sources if source in ("implementation", "congestion control", "interaction")]
    return (
        f" The share of the {listed(sources)} is 0 whichever implementation is left out, so these intervals do not "
        "contain its uncertainty, and are too narrow in this respect."
        if sources
        else ""
    )


def _larger(difference: Difference) -> str:
    if difference.low > 0:
        return "The interval is above 0, so the implementation's share is larger."
    if difference.high < 0:
        return "The interval is below 0, so the congestion control's share is larger."
    return "The interval includes 0, so these data do not show which share is larger."


def _points(each: Difference) -> str:
    """``+52``."""
    return f"{100 * each.value:+.0f}"


def _limits(each: Difference) -> str:
    """``-13 to +95``."""
    return f"{100 * each.low:+.0f} to {100 * each.high:+.0f}"


# ---- means ----------------------------------------------------------------------------------


def factors_of(results: ResultSet, case: TestCase, slower: str, faster: str) -> dict[str, float]:
    """By what a congestion control multiplies the goodput of each implementation that has both."""
    found: dict[str, dict[str, float]] = {}
    for server in with_known_controls(results).manifest.servers:
        values = known(run for run in of_case(results, case) if run.server == server)
        name, _, variant = server.partition(":")
        if values and min(values) > 0:
            found.setdefault(name, {})[CONTROLS[variant]] = statistics.geometric_mean(values)
    return {name: each[faster] / each[slower] for name, each in found.items() if {slower, faster} <= each.keys()}


def means_of_controls(results: ResultSet, case: TestCase) -> dict[tuple[str, str], tuple[float, bool]]:
    """Mean goodput over all runs of a server and congestion control, bit/s, and whether some did not succeed."""
    runs: dict[tuple[str, str], list[RunResult]] = {}
    for each in of_case(results, case):
        name, _, variant = each.server.partition(":")
        if variant in CONTROLS:
            runs.setdefault((name, CONTROLS[variant]), []).append(each)
    return {
        key: (statistics.fmean(values), any(each.verdict.outcome is not Outcome.SUCCEEDED for each in found))
        for key, found in runs.items()
        if (values := known(found))
    }


def _mean_in_words(mean: tuple[float, bool] | None) -> str:
    return "" if mean is None else f"{mean[0] / 1e6:.2f}{' T' if mean[1] else ''}"


def fastest_over_slowest(means: Mapping[tuple[str, str], tuple[float, bool]]) -> dict[str, tuple[float, int]]:
    """By congestion control: how many times as fast the fastest implementation is, and how many there are."""
    by_control: dict[str, list[float]] = {}
    for (_, control), (mean, _) in means.items():
        by_control.setdefault(control, []).append(mean)
    return {
        control: (max(found) / min(found), len(found))
        for control, found in by_control.items()
        if len(found) > 1 and min(found) > 0
    }


def _ratios(means: Mapping[tuple[str, str], tuple[float, bool]]) -> Iterator[str]:
    """How far implementations differ with the same congestion control."""
    for control, (ratio, count) in fastest_over_slowest(means).items():
        yield (
            f"- With {control}, the goodput of the fastest implementation is {ratio:.1f} times that of the slowest "
            f"({count} implementations; arithmetic means of the table)."
        )


def _above_threshold(means: Mapping[tuple[str, str], tuple[float, bool]], case: TestCase) -> Iterator[str]:
    """Which implementations exceed the paper's threshold over a link with random loss, by congestion control."""
    if not loss_share(case.emulated.forward_loss):
        return
    limit, parts = THRESHOLD * case.emulated.forward_rate, list[str]()
    for control in ORDER:
        found = {name: mean for (name, own), (mean, _) in means.items() if own == control}
        above = [name for name, mean in found.items() if mean > limit]
        if found:
            named = f" ({', '.join(above)})" if above else ""
            parts.append(f"{len(above)} of {len(found)}{'' if parts else ' implementations'} with {control}{named}")
    if parts:
        yield f"- The mean efficiency exceeds {100 * THRESHOLD:.0f} % for {listed(parts)}."


def _drops(results: ResultSet, case: TestCase) -> Iterator[str]:
    """Names the server that lost the largest share of its packets in the queue."""
    dropped: dict[str, list[float]] = {}
    for each in of_case(results, case):
        if (share := value_of(each, "queue_loss")) is not None:
            dropped.setdefault(each.server, []).append(share)
    if not dropped:
        return
    means = {name: statistics.fmean(found) for name, found in dropped.items()}
    first = max(means, key=means.__getitem__)
    yield (
        f"- The queue dropped {100 * means[first]:.0f} % of the packets of {first}, the largest share of any server; "
        f"the median over the servers is {100 * statistics.median(means.values()):.1f} %."
        f"{_spurious(results, case, first)}"
    )


def _spurious(results: ResultSet, case: TestCase, server: str) -> str:
    """How much of what a server repeated had already arrived."""
    runs = [run for run in of_case(results, case) if run.server == server]
    found = [value for run in runs if (value := value_of(run, "spurious")) is not None]
    told = f" Of the bytes that clients received from {server}, {100 * statistics.fmean(found):.0f} %" if found else ""
    return f"{told} had already arrived earlier." if told else ""
