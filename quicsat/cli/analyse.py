"""``./run.py analyse``: analyses stored traces again, and the logs of QIR or QIR-SE."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from quicsat.cli import console, foreign_inputs
from quicsat.cli import options as shared
from quicsat.cli.exit_status import ExitStatus
from quicsat.cli.program import Program, option
from quicsat.config.inventory import Inventory
from quicsat.model.errors import InputError
from quicsat.model.processes import process_pool
from quicsat.model.text import counted, first_few

if TYPE_CHECKING:
    from quicsat.analysis.foreign_runs import Findings
    from quicsat.report.table import Table
    from quicsat.results.qir_logs import ForeignRun, Tree

NAMED = 10
"""Names and paths of a kind that are listed."""
GROUP = "Results", 6
SUMMARY = "Analyse stored traces again, or the logs of QIR or QIR-SE, captures or qlogs."
DESCRIPTION = (
    "Reanalyse the stored traces of campaigns and store the results, or analyse the log directories of the QUIC "
    "Interop Runner (QIR) or of QIR-SE (the runner of arXiv 2202.08228), captures or qlogs, and print a table. You do "
    "not need Docker for this command."
)
EXAMPLES = (
    "analyse results/latest",
    "analyse logs --file-size '10 MiB' --format csv   # logs of another runner",
    "analyse client.sqlog:server.sqlog:link.sqlog     # qlogs of one run",
)


class Options(foreign_inputs.FileSizeOptions, group=foreign_inputs.LOGS):
    """The options of the command."""

    directories: list[Path] = option(
        type=Path, nargs="+", metavar="DIR",
        help="Campaigns, log directories of QIR or QIR-SE, captures with a key log as LEFT.pcap:RIGHT.pcap:KEYS, or "
        f"qlogs as {foreign_inputs.QLOG_TRIPLE}; example: results/latest.",
    )  # fmt: skip
    format: str = shared.FORMAT


def run(options: Options, program: Program) -> int:
    """Print what changed, or the table; the exit status is 3 if a run lost its result.

    Raises InputError if a directory contains neither a campaign nor runs of another runner.
    """
    from quicsat.analysis.reanalysis import carry_out as judge_again
    from quicsat.results.store import JOURNAL, has

    status = ExitStatus.SUCCESS
    texts = list[str]()
    for place, name in foreign_inputs.staged(program, options.directories):
        if has(place, JOURNAL) or not place.is_dir():
            text, bad = judge_again([place])
            status = ExitStatus.MACHINE if bad else status
        else:
            foreign_inputs.check_outside(place)
            known = Inventory(program.root).implementations
            text = _foreign(place, name, known, options.file_size, options.format)
        texts.append(text)
    console.show("\n".join(texts))
    return status


def _foreign(place: Path, name: str, known: Collection[str], size: int | None, form: str) -> str:
    from quicsat.analysis.foreign_runs import examine
    from quicsat.report.table import render
    from quicsat.results.qir_logs import find_runs

    tree = find_runs(place, known)
    if not tree.runs:
        raise InputError(
            f"{name}: contains no campaign (journal.jsonl) and no runs of QIR or QIR-SE (directories with sim, and "
            "client or server). Pass the directory of a campaign, or of their logs.",
            *_some(tree.ignored),
        )
    with process_pool(min(len(tree.runs), os.cpu_count() or 1)) as pool:
        found = list(pool.map(partial(examine, size=size), tree.runs))
    sheet = _sheet(place.name or name if str(place) == name else name, tree, found)
    if form == "csv":  # has no place for notes
        for note in sheet.notes:
            console.message(note)
        return render(sheet, form)
    tables = [sheet, *_details(tree, found)]
    return "\n\n".join([_summary(place, name, tree), *(render(table, form, console.width()) for table in tables)])


def _summary(place: Path, name: str, tree: Tree) -> str:
    """Pairs, test cases, files that directories of logs lack, and directories that were skipped."""
    from quicsat.results.qir_logs import escaped_name

    runs = tree.runs
    pairs, cases = ({getattr(run, name): None for run in runs} for name in ("pair", "test_case"))
    lines = [
        f"{name}: {counted(len(runs), 'run')}{' of another runner' if str(place) == name else ''}",
        f"pairs (server_client): {first_few(pairs, NAMED, lambda pair: escaped_name(pair) or '(no name)')}",
        f"test cases: {first_few(cases, NAMED, lambda case: escaped_name(case) or '(no name)')}",
    ]
    missing = Counter(file for run in runs for file in run.missing if str(place) == name)
    lines += [f"missing in {count} of {counted(len(runs), 'run')}: {file}" for file, count in missing.items()]
    lines += [f"skipped: {line}" for line in _some(tree.ignored)]
    return "\n".join(lines)


def _some(lines: Sequence[str]) -> list[str]:
    more = [f"and {len(lines) - NAMED} more"] if len(lines) > NAMED else []
    return [*lines[:NAMED], *more]


def _sheet(name: str, tree: Tree, found: Sequence[Findings]) -> Table:
    from quicsat.analysis.foreign_runs import SIMULATOR
    from quicsat.report.table import Column, Table, Unit
    from quicsat.results.qir_logs import escaped_name

    columns = [
        Column("server"), Column("client"), Column("test case"), Column("repetition", Unit.COUNT), Column("outcome"),
        Column("handshake", Unit.SECONDS, 3), Column("size", Unit.COUNT), Column("size from"),
        Column("goodput", Unit.RATE), Column("efficiency", Unit.SHARE, 1), Column("forward loss", Unit.SHARE, 2),
        Column("return loss", Unit.SHARE, 2), Column("times from"),
    ]  # fmt: skip
    rows = [_row(run, each) for run, each in zip(tree.runs, found, strict=True)]
    if any(run.above for run in tree.runs):
        columns = [Column("directory"), *columns]
        rows = [(escaped_name(run.above), *row) for run, row in zip(tree.runs, rows, strict=True)]
    notes = [f"{run.name}: {note}" for run, each in zip(tree.runs, found, strict=True) for note in each.notes]
    if any(each.clock == SIMULATOR for each in found):
        notes.append("Times from the simulator count from the start of the simulation; the date is unknown.")
    unknown = " Without a report of the link, the loss in its queue is unknown."
    notes.append(f"Nothing was stored.{'' if all(each.knows_link for each in found) else unknown}")
    return Table("foreign", f"Runs in {name}", tuple(columns), tuple(rows), tuple(notes))


def _details(tree: Tree, found: Sequence[Findings]) -> Iterator[Table]:
    """What the qlogs of each run show: packets, frames and metrics."""
    from quicsat.analysis.metrics import METRICS
    from quicsat.report.table import Column, Table
    from quicsat.site.pages import number

    for run, each in zip(tree.runs, found, strict=True):
        if each.counts:
            rows = [(name, str(count)) for name, count in each.counts.items()]
            known = (metric for metric in METRICS if metric.name in each.values)
            rows += [(metric.label, number(metric, each.values[metric.name])) for metric in known]
            yield Table("qlogs", f"Qlogs of {run.name}", (Column("quantity"), Column("value")), tuple(rows))


def _row(run: ForeignRun, found: Findings) -> tuple[str | int | float | None, ...]:
    from quicsat.results.qir_logs import escaped_name

    server, client = (
        (escaped_name(run.server), escaped_name(run.client)) if run.server else (escaped_name(run.pair), "?")
    )
    return (
        server, client, escaped_name(run.test_case), run.repetition, found.outcome, found.handshake, found.size,
        found.size_from, found.goodput, found.efficiency, found.loss_forward, found.loss_return, found.clock,
    )  # fmt: skip
