"""Results and plans as tables for terminal and Markdown."""

import math
import statistics
from collections.abc import Collection, Sequence

from quicsat.model.clock import Clock
from quicsat.model.errors import InputError
from quicsat.model.implementation import Protocol
from quicsat.model.outcomes import ErrorCode, Outcome
from quicsat.model.product_files import as_installed
from quicsat.model.results import Manifest, ResultSet
from quicsat.model.run import Run
from quicsat.model.test_case import TestCase, constant_rate
from quicsat.model.text import counted, printable, ranges
from quicsat.model.units import MBPS, mbit_per_s, percent, seconds
from quicsat.report.drawing import Row, Text, draw, fill, markdown_text
from quicsat.results.summary import FRAGILE, FRAGILE_MARK, VIRTUAL_ONLY, VIRTUAL_ONLY_MARK, Cell, figures, summarise

PROTOCOLS_IN_WORDS = {Protocol.H3: "HTTP/3 and QUIC", Protocol.TCP: "HTTPS and TCP"}
"""Those that are marked."""
REPEATED = (
    "(4 attempts): some were excluded, or were repeated with --retry. `./run.py tables DIR --table attempts` tells why."
)


# ---- matrix ---------------------------------------------------------------------------------


def matrix(
    result_set: ResultSet, test_case: str, *, colour: bool = False, width: int | None = None, markdown: bool = False
) -> str:
    """Clients by servers of one test case, split by columns where it is wider than ``width`` characters.

    Raises InputError if the results have no such test case.
    """
    manifest = result_set.manifest
    case = next((case for case in manifest.test_cases if case.name == test_case), None)
    if case is None:
        known = ", ".join(case.name for case in manifest.test_cases)
        message = f'These results have no test case "{printable(test_case)}". Known: {known}.'
        raise InputError(message)
    cells = {(cell.client, cell.server): cell for cell in summarise(result_set) if cell.test_case == test_case}
    clients = (Text(client, "cyan") for client in manifest.clients)
    columns = [[Text("client \\ server"), *clients, Text("all clients")]]
    for server in manifest.servers:
        column = [cells.get((client, server)) for client in manifest.clients]
        columns.append([Text(server, "cyan"), *(_cell_text(cell) for cell in column), _mean(column)])
    rows = [[cells.get((client, server)) for server in manifest.servers] for client in manifest.clients]
    columns.append([Text("all servers"), *(_mean(row) for row in rows), _mean(list(cells.values()))])
    title = f"{case.name}: {case.description}"
    header, *body = zip(*columns, strict=True)
    drawn = draw(header, body, width=width, wrap=False, colour=colour, markdown=markdown, below=1)
    heading = f"### {markdown_text(title)}" if markdown else fill(printable(title), width)
    protocols = {cell.protocol for cell in cells.values()}
    notes = [f"{VIRTUAL_ONLY_MARK} {VIRTUAL_ONLY}."] if any(cell.virtual_only for cell in cells.values()) else []
    notes += [as_installed(REPEATED)] if any(cell.repeated for cell in cells.values()) else []
    legend = _legend(case, manifest, protocols, width, notes, markdown=markdown)
    return "\n".join([heading, "", drawn, "", legend])


METRIC_WORDS = {
    "completion_time": "time to the last byte of the last object",
    "object_time_median": "median time from an object's request to its last byte",
}
"""The main metrics of workloads."""


def _cell_text(cell: Cell | None) -> Text:
    if cell is None:
        return Text("·")
    marks = {
        "T": cell.timeout,
        "×": cell.failed,
        "–": cell.unsupported,
        "!": cell.error,
        "»": cell.skipped,
        "·": cell.not_run,
    }
    counts = {mark: count for mark, count in marks.items() if count}
    if not counts:
        return Text(_marked(_goodput(cell), cell), "green")
    if cell.succeeded == 0 and len(counts) == 1:
        (mark,) = counts
        return Text(_marked(mark, cell), {"T": "red", "×": "red", "!": "magenta"}.get(mark))
    total = max(cell.planned, cell.n + cell.error + cell.skipped)
    counted = ", ".join([f"{cell.succeeded}/{total}", *(f"{count} {mark}" for mark, count in counts.items())])
    return Text(_marked(f"{_goodput(cell)}  ({counted})" if cell.succeeded else f"({counted})", cell), "yellow")


def _goodput(cell: Cell) -> str:
    """``12.1 ± 0.3  60 %``, Mbit/s; ``1.85 s`` of a workload; a check mark for successes without numbers."""
    if cell.time is not None:
        times = [cell.time.mean, cell.time.standard_deviation]
        return f"{' ± '.join(f'{number:.3g}' for number in times if number is not None)} s"
    if cell.goodput is None:
        return "✓"
    digits = 1 if cell.goodput.mean >= 10 * MBPS else 2
    numbers = [cell.goodput.mean, cell.goodput.standard_deviation]
    text = " ± ".join(f"{number / MBPS:.{digits}f}" for number in numbers if number is not None)
    text += f" {FRAGILE_MARK}" if cell.goodput.fragile else ""
    return f"{text}  {percent(cell.efficiency.mean)}" if cell.efficiency else text


def _marked(text: str, cell: Cell) -> str:
    """``12.1 ± 0.3  60 %  † h3 (4 attempts)``: protocol if it is not hq, attempts if they are more than repetitions."""
    clock = f"  {VIRTUAL_ONLY_MARK}" if cell.virtual_only else ""
    protocol = "" if cell.protocol is Protocol.HQ else f"  {cell.protocol}"
    attempts = f"  ({counted(cell.attempts, 'attempt')})" if cell.repeated else ""
    return f"{text}{clock}{protocol}{attempts}"


def _mean(cells: Sequence[Cell | None]) -> Text:
    means = [cell.efficiency.mean for cell in cells if cell is not None and cell.efficiency is not None]
    spread = figures(means)
    return Text(percent(spread.mean) if spread else "")


def _legend(
    case: TestCase,
    manifest: Manifest,
    protocols: Collection[Protocol],
    width: int | None,
    notes: Sequence[str],
    *,
    markdown: bool,
) -> str:
    n, rate = case.repetitions, constant_rate(case.link)
    whole = mbit_per_s(rate) if rate else "what the link offered meanwhile"
    numbers = f"goodput in Mbit/s and mean efficiency (share of {whole})"
    if case.workload is not None and case.workload.duration is None:
        numbers = f"{METRIC_WORDS[case.workload.main_metric]} in seconds"
    text = (
        f"n = {counted(n, 'repetition')} per pair. "
        f"Mean ± standard deviation of the {numbers}, of the repetitions that succeeded.\n"
        "T timeout, × failed, – unsupported, ! harness error, » skipped, · not run. "
        "(2/3, 1 T): of 3 repetitions 2 succeeded, 1 timed out.\n"
        "All servers, all clients: mean efficiency of the pairs that have one, each counted once.\n"
        f"{FRAGILE_MARK} fragile: the standard deviation is more than {percent(FRAGILE)} of the mean."
    )
    if manifest.clock is Clock.VIRTUAL:
        text += f"\nThe runs used {manifest.time}."
    text += "".join(f"\n{note}" for note in notes)
    for protocol in PROTOCOLS_IN_WORDS:
        if protocol in protocols:
            text += f"\n{protocol}: fetched over {PROTOCOLS_IN_WORDS[protocol]}; without a mark over HTTP/0.9 and QUIC."
    if markdown:
        return text.replace("\n", "\n\n")
    return "\n".join(fill(line, width) for line in text.splitlines())


# ---- failures and overhead ------------------------------------------------------------------


def failures(result_set: ResultSet, *, colour: bool = False, width: int | None = None, markdown: bool = False) -> str:
    """All runs that did not succeed, those of a pair and test case that ended alike in one row.

    Where an endpoint says that it does not know the test there is nothing more to tell: such runs are only counted.
    """
    groups: dict[tuple[str, ...], list[int]] = {}
    unknown = 0
    for result in result_set.results:
        verdict = result.verdict
        unknown += verdict.code is ErrorCode.UNSUPPORTED
        if verdict.outcome is not Outcome.SUCCEEDED and verdict.code is not ErrorCode.UNSUPPORTED:
            reason = verdict.reason or result.evidence.fault
            key = (result.server, result.client, result.test_case, verdict.outcome, verdict.code, reason)
            groups.setdefault(key, []).append(result.repetition)
    note = f"Of {counted(unknown, 'run')} an endpoint does not know the test." if unknown else ""
    if not groups and not unknown:
        count = len(result_set.results)
        return {0: "No run has a result yet.", 1: "The only run succeeded."}.get(count, f"All {count} runs succeeded.")
    if not groups:
        return f"{note} All others succeeded."
    header = ["server", "client", "test case", "repetition", "outcome", "code", "reason"]
    rows = [[*key[:3], ranges(repetitions), *key[3:]] for key, repetitions in groups.items()]
    coloured: list[Row] = [[Text(row[0], "cyan"), Text(row[1], "cyan"), *row[2:]] for row in rows]
    table = draw(header, coloured, width=width, keys=4, colour=colour, markdown=markdown)
    return f"{table}\n\n{note}" if note else table


def overhead(result_set: ResultSet, *, width: int | None = None, markdown: bool = False) -> str:
    """Where the time of the runs went: median and most seconds per phase, over the runs that had the phase."""
    results = [result for result in result_set.results if result.evidence.phases]
    if not results:
        return "No run has recorded the durations of its phases."
    phases = dict.fromkeys(phase for result in results for phase in result.evidence.phases)
    rows = [_durations(phase, [result.evidence.phases.get(phase) for result in results]) for phase in phases]
    rows.append(_durations("all but transfer", [result.evidence.overhead for result in results]))
    rows.append(_durations("total", [sum(result.evidence.phases.values()) for result in results]))
    header = ["phase", "median", "most", "runs"]
    return draw(header, rows, width=width, markdown=markdown, right=("median", "most", "runs"), below=2)


def _durations(name: str, durations: Sequence[float | None]) -> list[str]:
    known = [duration for duration in durations if duration is not None and math.isfinite(duration)]
    if not known:
        return [name, "", "", "0"]
    return [name, seconds(statistics.median(known)), seconds(max(known)), str(len(known))]


# ---- plans ----------------------------------------------------------------------------------


def plan(runs: Sequence[Run], *, width: int | None = None, markdown: bool = False) -> str:
    """The runs of a plan in their order, over which protocol if not all are over hq, and how long they take at most."""
    several = {run.protocol for run in runs} != {Protocol.HQ}
    rows = [
        [
            str(number),
            run.server.name,
            run.client.name,
            run.test_case.name,
            str(run.repetition),
            seconds(run.test_case.timeout),
            *([run.protocol] if several else []),
        ]
        for number, run in enumerate(runs, start=1)
    ]
    header = ["#", "server", "client", "test case", "repetition", "timeout", *(["protocol"] if several else [])]
    return draw(header, rows, width=width, right=("#", "repetition", "timeout"), markdown=markdown)


def plan_summary(runs: Sequence[Run]) -> list[str]:
    """Sentences: how many runs of how many pairs and test cases, the families, and how long transfers take at most."""
    if not runs:
        return []
    pairs = {(run.server.name, run.client.name) for run in runs}
    cases = {run.test_case.name for run in runs}
    longest = seconds(sum(run.test_case.timeout for run in runs))
    counts = [counted(len(pairs), "pair"), counted(len(cases), "test case")]
    whole = counted(len(runs), "run; its transfers take", "runs; their transfers take")
    return [f"{', '.join([*counts, whole])} {longest} at most.", *_families(runs)]


def _families(runs: Sequence[Run]) -> list[str]:
    """``lossy: 5 members × 4 pairs, 60 runs.`` for each family of the plan."""
    groups: dict[str, list[Run]] = {}
    for run in runs:
        if run.test_case.family:
            groups.setdefault(run.test_case.family.name, []).append(run)
    lines = []
    for name, mine in groups.items():
        members = len({run.test_case.name for run in mine})
        pairs = len({(run.server.name, run.client.name) for run in mine})
        lines.append(f"{name}: {counted(members, 'member')} × {counted(pairs, 'pair')}, {counted(len(mine), 'run')}.")
    return lines
