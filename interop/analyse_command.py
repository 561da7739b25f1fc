"""What `./run.py analyse` does, and its options: campaigns are judged again, runs of other runners are examined."""

from __future__ import annotations

import argparse
import os
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from interop import quantities
from interop.errors import InputError
from interop.options import worded

if TYPE_CHECKING:
    from interop.analysis.foreign_runs import Findings
    from interop.foreign_logs import ForeignRun, Tree
    from interop.sheets import Sheet

NAMED = 10
"""Names and paths of a kind that are listed."""
FORMATS = ("text", "markdown", "csv", "latex")


def add_options(parser: argparse.ArgumentParser) -> None:
    """The options of the command."""
    parser.add_argument("directories", type=Path, nargs="+", metavar="DIR", help="campaigns, or logs of QIR or QIR-SE")
    parser.add_argument(
        "--file-size",
        type=worded(quantities.within(quantities.size, "1 B", "1000 GB")),
        metavar="SIZE",
        help='of all files of a run of another runner together, "10 MiB"; default: what output.txt or streams tell',
    )
    parser.add_argument("--format", choices=FORMATS, default="text", help="of the table of another runner's runs")


def carry_out(options: argparse.Namespace, known: Callable[[], Collection[str]]) -> tuple[str, bool]:
    """What the command says, and whether a run of a campaign is spoiled now.

    ``known`` gives names of implementations, which tell server and client apart. Raises InputError if a directory holds
    neither a campaign nor runs of another runner.
    """
    from interop.analysis.reanalysis import carry_out as judge_again
    from interop.store import JOURNAL

    said, spoiled = list[str](), False
    for place in options.directories:
        if (place / JOURNAL).exists() or not place.is_dir():
            text, bad = judge_again([place])
            spoiled |= bad
        else:
            text = _foreign(place, known(), options.file_size, options.format)
        said.append(text)
    return "\n".join(said), spoiled


def _foreign(place: Path, known: Collection[str], size: int | None, form: str) -> str:
    from interop.analysis.foreign_runs import examine
    from interop.foreign_logs import find_runs
    from interop.sheets import render

    tree = find_runs(place, known)
    if not tree.runs:
        raise InputError(
            f"{place}: holds no results (no journal.jsonl), and no runs of QIR or QIR-SE (directories with sim, and "
            "client or server). Name the directory of a campaign, or of their logs.",
            *_some(tree.ignored),
        )
    with ProcessPoolExecutor(min(len(tree.runs), os.cpu_count() or 1)) as pool:
        found = list(pool.map(partial(examine, size=size), tree.runs))
    table = render(_sheet(place, tree, found), form)
    return table if form == "csv" else f"{_summary(place, tree)}\n\n{table}"


def _summary(place: Path, tree: Tree) -> str:
    """Which pairs and test cases there are, and what is missing or was left out."""
    from interop.foreign_logs import shown

    runs = tree.runs
    pairs, cases = ({getattr(run, name): None for run in runs} for name in ("pair", "test_case"))
    lines = [
        f"{place}: {len(runs)} runs of another runner",
        f"pairs (server_client): {', '.join(_some([shown(pair) or '(no name)' for pair in pairs]))}",
        f"test cases: {', '.join(_some([shown(case) or '(no name)' for case in cases]))}",
    ]
    missing = Counter(name for run in runs for name in run.missing)
    lines += [f"missing in {count} of {len(runs)} runs: {name}" for name, count in missing.items()]
    lines += [f"left out: {line}" for line in _some(tree.ignored)]
    return "\n".join(lines)


def _some(names: Sequence[str]) -> list[str]:
    more = [f"and {len(names) - NAMED} more"] if len(names) > NAMED else []
    return [*names[:NAMED], *more]


def _sheet(place: Path, tree: Tree, found: Sequence[Findings]) -> Sheet:
    from interop.analysis.foreign_runs import SIMULATOR
    from interop.sheets import Column, Sheet, Unit

    columns = (
        Column("server"), Column("client"), Column("test case"), Column("repetition", Unit.COUNT), Column("outcome"),
        Column("handshake", Unit.SECONDS, 3), Column("size", Unit.COUNT), Column("size from"),
        Column("goodput", Unit.RATE), Column("efficiency", Unit.SHARE, 1), Column("loss forward", Unit.SHARE, 2),
        Column("loss return", Unit.SHARE, 2), Column("times from"),
    )  # fmt: skip
    rows = [_row(run, each) for run, each in zip(tree.runs, found, strict=True)]
    notes = [f"{run.name}: {note}" for run, each in zip(tree.runs, found, strict=True) for note in each.notes]
    if any(each.clock == SIMULATOR for each in found):
        notes.append("Times from the simulator count from the start of a simulation: no date is known.")
    notes.append("Nothing was written. There is no report of the link, so the loss of its queue is not known.")
    return Sheet("foreign", f"Runs in {place.name or place}", columns, tuple(rows), tuple(notes))


def _row(run: ForeignRun, found: Findings) -> tuple[str | int | float | None, ...]:
    from interop.foreign_logs import shown

    server, client = (shown(run.server), shown(run.client)) if run.server else (shown(run.pair), "?")
    return (
        server, client, shown(run.test_case), run.repetition, found.outcome, found.handshake, found.size,
        found.size_from, found.goodput, found.efficiency, found.loss_forward, found.loss_return, found.clock,
    )  # fmt: skip
