"""Sweeps: goodput against the queue, the delay, the loss and the size of the file."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

from interop.model.emulated_link import loss_share
from interop.model.family import SweptValue
from interop.model.outcomes import Outcome
from interop.model.results import ResultSet
from interop.model.test_case import TestCase
from interop.report.table import Column, Table
from interop.statistics.overview import by_family
from interop.statistics.samples import GOODPUT, find, value_of
from plots.sweep import QUEUE
from scripts.paper.goodput import STREAM_GOODPUT, known, of_case
from scripts.paper.lines import Figure, Line, rendered
from scripts.paper.real_time import both_clocks
from scripts.paper.words import counted, listed

PACKET = 8 * 1500
"""Bits of a packet; the text gives bandwidth-delay products in such packets."""


def sweeps(
    results: ResultSet, matrix: ResultSet, figures: Sequence[Line], real: ResultSet | None = None
) -> Iterator[Line]:
    """A table, a figure and the range of each sweep.

    ``matrix``: runs over the same link as some of them. ``real``: runs in real time.
    """
    yield "## Sweeps"
    yield ""
    yield (
        f"In the sweeps, {'each of ' if len(results.manifest.servers) > 1 else ''}{listed(results.manifest.servers)} "
        "is paired with itself. Each sweep changes one parameter of `sat`. For runs that timed out, goodput is based "
        "on the bytes that had arrived; in the tables, mean values that include such runs are marked with T. The "
        f"bandwidth-delay product of `sat` is 1,000 packets of 1,500 bytes.{_delay_of_sat(matrix)} {_limits(results)}"
    )
    yield ""
    yield from over_the_same_link(results, matrix)
    yield from in_real_time(results, matrix, real)
    for cases in by_family(results.manifest.test_cases).values():
        yield from rendered(by_value(results, cases))
        yield from ranges(results, cases)
        if about := ABOUT.get(swept(cases[0]).key):
            yield ""
            yield from about(results, cases)
        yield ""
        yield from (each for each in figures if isinstance(each, Figure) and each.shows(_abbreviation(cases)))


def _limits(results: ResultSet) -> str:
    """``The time limits are 120 s (forward queue), 300 s (delay).``"""
    limits = [
        f"{max(case.timeout for case in cases):g} s ({swept(cases[0]).key})"
        for cases in by_family(results.manifest.test_cases).values()
    ]
    return f"The time limits of the sweeps are {listed(limits)}."


def _delay_of_sat(matrix: ResultSet) -> str:
    sat = find(matrix, "sat")
    return f" *Delay* is the one-way delay, which is {1000 * sat.emulated.forward_delay:g} ms for `sat`." if sat else ""


def _abbreviation(cases: Sequence[TestCase]) -> str:
    return cases[0].family.abbreviation if cases[0].family else ""


def swept(case: TestCase) -> SweptValue:
    """The value that a sweep gives to the test case."""
    assert case.family is not None
    return case.family.values[0]


def by_value(results: ResultSet, cases: Sequence[TestCase]) -> Table:
    """Goodput of each implementation, by the value of the swept key."""
    key = swept(cases[0]).key
    columns = (Column("server and client"), *(Column(swept(case).text) for case in cases))
    rows = [(name, *(_cell(results, case, name) for case in cases)) for name in results.manifest.servers]
    return Table(key, f"Goodput in Mbit/s by {key}", columns, tuple(rows))


def _cell(results: ResultSet, case: TestCase, name: str) -> str:
    runs = [run for run in of_case(results, case) if run.server == name]
    values = known(runs)
    late = any(run.verdict.outcome is not Outcome.SUCCEEDED for run in runs)
    return f"{statistics.fmean(values) / 1e6:.2f}{' T' if late else ''}" if values else ""


def ranges(results: ResultSet, cases: Sequence[TestCase]) -> Iterator[str]:
    """How many times as fast the last value of the sweep is, compared with the first."""
    if told := _range(results, cases):
        yield f"{told} In the figures, this sweep is called {_abbreviation(cases)}."


def _range(results: ResultSet, cases: Sequence[TestCase]) -> str:
    """The smallest and the largest change from the first value to the last, as a sentence; empty without runs."""
    first, last = cases[0], cases[-1]
    ratios = {}
    for name in results.manifest.servers:
        low, high = (known(run for run in of_case(results, case) if run.server == name) for case in (first, last))
        if low and high:
            ratios[name] = statistics.fmean(high) / statistics.fmean(low)
    if not ratios:
        return ""
    least, most = min(ratios, key=ratios.__getitem__), max(ratios, key=ratios.__getitem__)
    if ratios[most] <= 1:
        return (
            f"At a {swept(last).key} of {_with_unit(swept(last))}, goodput is {100 * ratios[least]:.0f} % ({least}) to "
            f"{100 * ratios[most]:.0f} % ({most}) of that at {swept(first).text}."
        )
    return (
        f"As the {swept(first).key} increases from {swept(first).text} to {_with_unit(swept(last))}, goodput "
        f"changes by a factor of {ratios[least]:.2g} ({least}) to {ratios[most]:.2g} ({most})."
    )


def _with_unit(value: SweptValue) -> str:
    """``600 ms``; ``2000 packets``, since the text of a queue has no unit."""
    return f"{value.text} packets" if QUEUE.search(value.key) and not value.unit else value.text


# ---- what a reader has to know of single sweeps ---------------------------------------------


def with_other_seeds(results: ResultSet, matrix: ResultSet) -> dict[str, list[float]]:
    """Goodput of each implementation over ``sat`` with several seeds, bit/s, sorted: of sweeps and of the matrix."""
    sat, found = find(matrix, "sat"), dict[str, list[float]]()
    cases = [case for case in results.manifest.test_cases if sat is not None and _is_same(case, sat)]
    for name in results.manifest.servers if sat is not None else ():
        runs = [run for case in cases for run in of_case(results, case) if run.server == name]
        runs += [run for run in matrix.results if run.test_case == "sat" and run.server == run.client == name]
        values = [value for run in runs if (value := value_of(run, GOODPUT)) is not None]
        if len(values) > 1:
            found[name] = sorted(values)
    return found


def over_the_same_link(results: ResultSet, matrix: ResultSet) -> Iterator[str]:
    """How far runs over ``sat`` differ that are in several sweeps and in the matrix, each with another seed."""
    found, sat = with_other_seeds(results, matrix), find(matrix, "sat")
    if not found or sat is None:
        return
    count = sum(_is_same(case, sat) for case in results.manifest.test_cases)
    spread = {name: values[-1] / values[0] - 1 for name, values in found.items()}
    most = max(spread, key=spread.__getitem__)
    others = [value for name, value in spread.items() if name != most]
    rest = f" The results of the other implementations differ by at most {100 * max(others):.1f} %." if others else ""
    yield (
        f"In the sweeps, {counted(count, 'test case')} {'uses' if count == 1 else 'use'} the same link and "
        "file as `sat` in the matrix, which has no random loss. Their seeds differ, because seeds depend on the name "
        f"of the sweep. In these runs, {most} reaches {listed(f'{value / 1e6:.2f}' for value in found[most])} Mbit/s, "
        f"so results with different seeds differ by up to {100 * spread[most]:.0f} %.{rest} Without random loss, a "
        "seed determines only the random numbers of the endpoints. All values in the sweeps should be read with this "
        "uncertainty in mind."
    )
    yield ""


def in_real_time(results: ResultSet, matrix: ResultSet, real: ResultSet | None) -> Iterator[str]:
    """How far the clocks differ for the pairs of the sweeps over the links of the matrix; nothing without such runs."""
    told = list[str]()
    for case in real.manifest.test_cases if real is not None else ():
        ratios = [
            f"{each.server} {each.ratio:.2f}"
            for each in (both_clocks(matrix, real, case) if real is not None else ())
            if each.server == each.client and each.server in results.manifest.servers
        ]
        if ratios:
            told.append(f"over `{case.name}`: {', '.join(ratios)}")
    if told:
        yield (
            "We did not measure the sweeps in real time. Over the links of the matrix, the goodput of these pairs in "
            f"virtual time, divided by that in real time, is as follows: {'; '.join(told)}."
        )
        yield ""


def finding(results: ResultSet, matrix: ResultSet) -> Iterator[str]:
    """How far goodput changes from one end of each sweep to the other, as an item of a list.

    ``matrix``: runs over the same link as some sweeps, with other seeds.
    """
    told = [
        f"{text}{IN_SHORT[key](results, cases) if (key := swept(cases[0]).key) in IN_SHORT else ''}"
        for cases in by_family(results.manifest.test_cases).values()
        if (text := _range(results, cases))
    ]
    if told:
        yield (
            f"- We changed one parameter of `sat` at a time, with {counted(len(results.manifest.servers), 'pair')} of "
            f"an implementation with itself. {' '.join(told)} These runs have one seed, and hold in virtual time only."
            f"{_seeds_in_short(results, matrix)} See [Sweeps](#sweeps)."
        )


def _seeds_in_short(results: ResultSet, matrix: ResultSet) -> str:
    """The implementation whose goodput depends most on the seed, as a sentence; empty if it is not known."""
    spread = {name: values[-1] / values[0] - 1 for name, values in with_other_seeds(results, matrix).items()}
    if not spread:
        return ""
    most = max(spread, key=spread.__getitem__)
    return f" With other seeds, the goodput of {most} over `sat` differs by up to {100 * spread[most]:.0f} %."


def _ratio_in_short(_: ResultSet, __: Sequence[TestCase]) -> str:
    return " The delay also changes the queue relative to the bandwidth-delay product."


def _stream_in_short(results: ResultSet, cases: Sequence[TestCase]) -> str:
    """The range for goodput from the first to the last byte of the file, as a sentence; empty if it is not known."""
    ratios = {}
    for name in results.manifest.servers:
        ends = [
            [value for run in of_case(results, case) if run.server == name
             if (value := value_of(run, STREAM_GOODPUT)) is not None]
            for case in (cases[0], cases[-1])
        ]  # fmt: skip
        if all(ends):
            ratios[name] = statistics.fmean(ends[1]) / statistics.fmean(ends[0])
    if not ratios:
        return ""
    least, most = min(ratios, key=ratios.__getitem__), max(ratios, key=ratios.__getitem__)
    return (
        f" From the first to the last byte of the file, it changes by a factor of {ratios[least]:.2g} ({least}) to "
        f"{ratios[most]:.2g} ({most})."
    )


IN_SHORT: Mapping[str, Callable[[ResultSet, Sequence[TestCase]], str]] = {
    "delay": _ratio_in_short, "file size": _stream_in_short
}  # fmt: skip
"""Sentences of the finding, by the swept key."""


def _is_same(case: TestCase, sat: TestCase) -> bool:
    without_loss = replace(case.emulated, forward_loss=None, return_loss=None)
    loss = loss_share(case.emulated.forward_loss) + loss_share(case.emulated.return_loss)
    return without_loss == sat.link and loss == 0 and case.file_sizes == sat.file_sizes


def _queue_and_delay(_: ResultSet, cases: Sequence[TestCase]) -> Iterator[str]:
    links = [case.emulated for case in cases]
    products = [link.forward_rate * link.round_trip_delay / PACKET for link in links]
    queue = links[0].forward_queue
    assert isinstance(queue, int)
    yield (
        f"The queue holds {queue} packets at every delay, while the bandwidth-delay product grows from "
        f"{products[0]:.0f} to {products[-1]:.0f} packets. The queue therefore shrinks from "
        f"{100 * queue / products[0]:.0f} to {100 * queue / products[-1]:.1f} % of this product, and the sweep does "
        "not separate the effect of the delay from that of this ratio."
    )


def _runs_with_loss(results: ResultSet, cases: Sequence[TestCase]) -> Iterator[str]:
    parts = list[str]()
    for case in cases:
        reports = [run.evidence.simulator for run in of_case(results, case)]
        drops = [report.forward.loss_drops for report in reports if report is not None]
        if loss_share(case.emulated.forward_loss) and drops:
            word = "" if parts else " runs"
            parts.append(f"{sum(drop > 0 for drop in drops)} of {len(drops)}{word} at {swept(case).text}")
    if parts:
        yield (
            f"The link lost at least one packet in {listed(parts)}. Runs without a lost packet do not show the effect "
            "of loss."
        )


def _small_files(results: ResultSet, cases: Sequence[TestCase]) -> Iterator[str]:
    """Goodput of small files depends on packets around the file, so there is a table of times, too."""
    yield (
        "If a server sends 1-RTT packets before it has received the request, goodput includes the time from the first "
        "of these packets to the request. For small files, this can change the order of the servers. The next table "
        "does not depend on such packets."
    )
    yield ""
    columns = (Column("server and client"), *(Column(swept(case).text) for case in cases))
    rows = []
    for name in results.manifest.servers:
        times = []
        for case in cases:
            runs = [run for run in of_case(results, case) if run.server == name]
            found = [value for run in runs if (value := value_of(run, "completion_time")) is not None]
            times.append(f"{statistics.fmean(found):.2f}" if found else "")
        rows.append((name, *times))
    note = "The time is measured from the first packet of the client to the last byte of the file."
    title = "Seconds until the file has arrived, by file size"
    yield from rendered(Table("completion", title, columns, tuple(rows), (note,)))


ABOUT: Mapping[str, Callable[[ResultSet, Sequence[TestCase]], Iterator[str]]] = {
    "delay": _queue_and_delay, "forward loss": _runs_with_loss, "file size": _small_files
}  # fmt: skip
"""Sentences, by the swept key."""
