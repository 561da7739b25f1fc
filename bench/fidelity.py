"""Compares goodput in virtual time with that in real time: which pairs and servers are equivalent within 5 %.

    python -m bench.fidelity REAL… --virtual VIRTUAL… [--fitted CLIENT…] [--other-losses] [--json FILE] [--figure FILE]

REAL and VIRTUAL are directories of campaigns, or exports (`result.json`, compressed). A run that timed out counts with
the rate at which bytes arrived until then. Pairs of the clients that calibration used (--fitted) are judged, but count
neither for servers nor for links.
"""

# ruff: noqa: T201 - a script

from __future__ import annotations

import argparse
import datetime
import gzip
import json
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from quicsat.model.clock import Clock
from quicsat.model.emulated_link import EmulatedLink
from quicsat.model.outcomes import Outcome
from quicsat.model.results import Manifest, ResultSet, RunResult
from quicsat.model.test_case import TestCase
from quicsat.plots import theme
from quicsat.report.table import Column, Table, Unit, Value, render
from quicsat.results.document import a_line_each, parse_document
from quicsat.results.store import load
from quicsat.statistics.equivalence import (
    MARGIN,
    Agreement,
    BothClocks,
    Equivalence,
    MeasuredRun,
    equivalence,
    outcomes_differ,
)
from quicsat.statistics.samples import CONCLUSIVE_RUNS, GOODPUT, value_of

COMPRESSED = ".gz"
WIDTH = 80
DIGITS = 4
"""Of stored ratios."""
SHOWN_RATIOS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.1, 1.25, 1.5, 2.0, 3.0, 5.0, 10.0)
SIDES = 0.8, 1.25
"""Ratios that a figure always shows."""
COLOURS = {Agreement.EQUIVALENT: theme.BLUE, Agreement.DIFFERENT: theme.VERMILION, Agreement.UNDECIDED: theme.GREY}
MARKS = {Agreement.EQUIVALENT: "o", Agreement.DIFFERENT: "D", Agreement.UNDECIDED: "s"}


@dataclass
class Pair:
    """The runs of a pair over a link with both clocks."""

    real: list[MeasuredRun] = field(default_factory=list)
    virtual: list[MeasuredRun] = field(default_factory=list)
    conclusive: Counter[Clock] = field(default_factory=Counter)
    """Runs that say something about the pair."""
    succeeded: Counter[Clock] = field(default_factory=Counter)

    @property
    def both(self) -> BothClocks:
        """The runs that have a number."""
        return BothClocks(tuple(self.real), tuple(self.virtual))


@dataclass(frozen=True)
class Row:
    """What is known of a pair, or of a server with all judged clients (``client`` is empty) over a link."""

    link: str
    server: str
    client: str
    ratio: float | None
    """Of the geometric means, virtual to real time."""
    low: float | None
    high: float | None
    """90 % interval."""
    real: int
    virtual: int
    """Runs that are compared."""
    verdict: Agreement


@dataclass(frozen=True)
class Campaigns:
    """Everything that was measured with both clocks."""

    results: tuple[ResultSet, ...]
    metric: str
    fitted: frozenset[str] = frozenset()
    other_losses: bool = False
    """Whether runs with other losses are compared, too."""

    @property
    def links(self) -> dict[str, bool]:
        """Test cases that both clocks have, and whether only runs with the same losses are compared."""
        found = {clock: {case.name: case for case in self._cases(clock)} for clock in Clock}
        both = {name: case for name, case in found[Clock.REAL].items() if name in found[Clock.VIRTUAL]}
        return {name: _loses(case) and not self.other_losses for name, case in both.items()}

    def _cases(self, clock: Clock) -> Iterator[TestCase]:
        return (case for each in self.results if each.manifest.clock is clock for case in each.manifest.test_cases)

    def pairs(self) -> dict[tuple[str, str, str], Pair]:
        """By link, server and client: those that both clocks have tried."""
        found = dict[tuple[str, str, str], Pair]()
        for manifest, run in self._runs():
            if run.verdict.outcome in CONCLUSIVE_RUNS:
                pair, clock = found.setdefault((run.test_case, run.server, run.client), Pair()), manifest.clock
                pair.conclusive[clock] += 1
                pair.succeeded[clock] += run.verdict.outcome is Outcome.SUCCEEDED
                if (value := self._value(manifest, run)) is not None and value > 0:
                    mine = pair.real if clock is Clock.REAL else pair.virtual
                    mine.append(_observation(manifest, run, value))
        return {key: pair for key, pair in found.items() if len(pair.conclusive) == len(Clock)}

    def _runs(self) -> Iterable[tuple[Manifest, RunResult]]:
        """Each one once; a seed has the same run in all campaigns in virtual time."""
        found = dict[tuple[Any, ...], tuple[Manifest, RunResult]]()
        for manifest, run in ((each.manifest, run) for each in self.results for run in each.results):
            virtual = manifest.clock is Clock.VIRTUAL
            which = (run.evidence.seed,) if virtual else (manifest.id, run.repetition)
            found[run.test_case, run.server, run.client, manifest.clock, *which] = manifest, run
        return found.values()

    def _value(self, manifest: Manifest, run: RunResult) -> float | None:
        """Instead of its goodput, a run that timed out has the rate at which bytes arrived until its limit (bit/s)."""
        if run.verdict.outcome is not Outcome.TIMEOUT or self.metric != GOODPUT or run.verdict.received is None:
            return value_of(run, self.metric)
        return (
            8 * run.verdict.received / next(each.timeout for each in manifest.test_cases if each.name == run.test_case)
        )


def _loses(case: TestCase) -> bool:
    """Whether losses of a test case depend on the seed."""
    link = case.link
    return isinstance(link, EmulatedLink) and any(way.loss is not None for way in (link.forward, link.back))


def _observation(manifest: Manifest, run: RunResult, value: float) -> MeasuredRun:
    evidence = run.evidence
    processor = evidence.host.processor if evidence.host else manifest.processor
    block = f"{processor}, {evidence.started[:10]}" if manifest.clock is Clock.REAL else ""
    return MeasuredRun(value, f"{block}, {manifest.seed}, {run.repetition}", block, evidence.seed)


def read(paths: Iterable[Path]) -> Iterator[ResultSet]:
    """Campaigns in directories and exports; InputError if one cannot be read."""
    for path in paths:
        if path.suffix == COMPRESSED:
            yield parse_document(path, gzip.decompress(path.read_bytes())).result_set
        else:
            yield load(path).result_set


# ---- verdicts -------------------------------------------------------------------------------


def judge_pairs(campaigns: Campaigns) -> list[Row]:
    """A row for each pair that has a number."""
    links, rows = campaigns.links, []
    for (link, server, client), pair in campaigns.pairs().items():
        if link in links and (pair.real or pair.virtual):
            found = equivalence([pair.both], same_losses=links[link])
            shares = [(pair.succeeded[clock], pair.conclusive[clock]) for clock in Clock]
            rows.append(_row(link, server, client, found, differ=outcomes_differ(*shares)))
    return sorted(rows, key=lambda row: (list(links).index(row.link), row.server, row.client))


def judge_servers(campaigns: Campaigns) -> list[Row]:
    """A row for each server and link: the pairs with judged clients, each counted once."""
    links, pairs = campaigns.links, campaigns.pairs()
    rows = []
    for link, same_losses in links.items():
        for server in sorted({server for case, server, _ in pairs if case == link}):
            mine = [pair.both for (case, name, client), pair in pairs.items()
                    if (case, name) == (link, server) and client not in campaigns.fitted]  # fmt: skip
            if (found := equivalence(mine, same_losses=same_losses)) is not None:
                rows.append(_row(link, server, "", found))
    return rows


def _row(link: str, server: str, client: str, found: Equivalence | None, *, differ: bool = False) -> Row:
    if found is None:
        return Row(link, server, client, None, None, None, 0, 0, Agreement.DIFFERENT if differ else Agreement.UNDECIDED)
    low, high = (round(end, DIGITS) for end in found.interval) if found.interval else (None, None)
    verdict = Agreement.DIFFERENT if differ else found.verdict
    return Row(link, server, client, round(found.ratio, DIGITS), low, high, found.real, found.virtual, verdict)


# ---- output ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class Fidelity:
    """All verdicts."""

    pairs: tuple[Row, ...]
    servers: tuple[Row, ...]
    fitted: frozenset[str]

    @property
    def judged(self) -> list[Row]:
        """The pairs whose clients were not used for calibration."""
        return [row for row in self.pairs if row.client not in self.fitted]

    def tables(self) -> tuple[Table, ...]:
        """Links, servers, and pairs that are different."""
        verdicts = tuple(Column(verdict.value, Unit.COUNT) for verdict in Agreement)
        numbers = (Column("ratio", Unit.RATIO, 3), Column("low", Unit.RATIO, 3), Column("high", Unit.RATIO, 3),
                   Column("real", Unit.COUNT), Column("virtual", Unit.COUNT))  # fmt: skip
        rows = list[tuple[Value, ...]]()
        for link in dict.fromkeys(row.link for row in self.judged):
            pairs, servers = ([row for row in many if row.link == link] for many in (self.judged, self.servers))
            counts = Counter(row.verdict for row in pairs)
            near = sum(row.ratio is not None and 1 / (1 + MARGIN) < row.ratio < 1 + MARGIN for row in servers)
            rows.append((link, len(pairs), *(counts[verdict] for verdict in Agreement), f"{near} of {len(servers)}"))
        far = [row for row in self.pairs if row.verdict is Agreement.DIFFERENT]
        return (
            Table("links", "Pairs and links", (Column("link"), Column("pairs", Unit.COUNT), *verdicts,
                  Column("servers ±5 %")), tuple(rows)),
            Table("servers", "Servers", (Column("link"), Column("server"), *numbers, Column("verdict")),
                  tuple(_values(row) for row in self.servers)),
            Table("different", "Pairs that are different", (Column("link"), Column("server"), Column("client"),
                  *numbers), tuple((row.link, row.server, row.client, *_values(row)[2:-1]) for row in far)),
        )  # fmt: skip

    def document(self, campaigns: Campaigns) -> str:
        """As JSON, a line for each pair, server and campaign."""
        lists = {
            "campaigns": [_facts(each) for each in campaigns.results],
            "servers": [_plain(row) for row in self.servers],
            "pairs": [_plain(row) for row in self.pairs],
        }
        head = {"date": datetime.date.today().isoformat(), "metric": campaigns.metric, "margin": MARGIN,
                "fitted clients": sorted(self.fitted)}  # fmt: skip
        body = "".join(f',\n"{name}": {a_line_each(items)}' for name, items in lists.items())
        return f"{json.dumps(head)[:-1]}{body}}}\n"


def _values(row: Row) -> tuple[Any, ...]:
    return row.link, row.server, row.ratio, row.low, row.high, row.real, row.virtual, row.verdict.value


def _plain(row: Row) -> dict[str, Any]:
    return {name: value for name, value in asdict(row).items() if value != ""}


def _facts(campaign: ResultSet) -> dict[str, Any]:
    manifest = campaign.manifest
    processors = sorted({run.evidence.host.processor for run in campaign.results if run.evidence.host})
    return {"id": manifest.id, "started": manifest.started, "time": manifest.time, "seed": manifest.seed,
            "runs": len(campaign.results), "succeeded": sum(run.verdict.outcome is Outcome.SUCCEEDED
                                                            for run in campaign.results),
            "processors": processors}  # fmt: skip


def draw(fidelity: Fidelity, target: Path) -> None:
    """The ratio of each server with its interval, beside its pairs; a panel for each link."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib.figure import Figure

    links = list(dict.fromkeys(row.link for row in fidelity.servers))
    names = sorted({row.server for row in fidelity.servers}, reverse=True)
    figure = Figure(figsize=(2.2 + 2.6 * len(links), 1.4 + 0.24 * len(names)), layout="constrained")
    values = (value for row in fidelity.servers for value in (row.ratio, row.low, row.high))
    shown = [*SIDES, *filter(None, (*values, *(row.ratio for row in fidelity.pairs)))]
    ends = 0.97 * min(shown), 1.03 * max(shown)
    ticks = [each for each in SHOWN_RATIOS if ends[0] <= each <= ends[1]]
    panels = figure.subplots(1, len(links), sharex=True, sharey=True, squeeze=False)[0]
    for ax, link in zip(panels, links, strict=True):
        ax.axvspan(1 / (1 + MARGIN), 1 + MARGIN, color=theme.GREY, alpha=0.15, linewidth=0)
        ax.axvline(1, color=theme.GREY, linewidth=0.6)
        for row in (each for each in fidelity.pairs if each.link == link and each.ratio):
            ax.plot(row.ratio, names.index(row.server) + 0.28, "|", color=COLOURS[row.verdict], markersize=4)
        for row in (each for each in fidelity.servers if each.link == link):
            place, colour = names.index(row.server), COLOURS[row.verdict]
            if row.low is not None:
                ax.plot((row.low, row.high), (place, place), color=colour, linewidth=1.2)
            ax.plot(row.ratio, place, MARKS[row.verdict], color=colour, markersize=4)
        ax.set_xscale("log")
        ax.set_xticks(ticks, [f"{each:g}" for each in ticks], rotation=90, fontsize=7)
        ax.set_xticks([], minor=True)
        ax.set(title=link, xlim=ends, ylim=(-0.7, len(names) - 0.2))
        ax.set_yticks(range(len(names)), names)
        ax.tick_params(axis="y", length=0)
        for side in ("top", "right"):
            ax.spines[side].set_visible(False)
    figure.supxlabel("goodput in virtual time / in real time", fontsize=9)
    handles = [mpl.lines.Line2D([], [], color=COLOURS[each], marker=MARKS[each], markersize=4, label=each.value)
               for each in Agreement]  # fmt: skip
    bars = mpl.lines.Line2D([], [], color=theme.GREY, marker="|", linestyle="", label="one pair")
    figure.legend(handles=[*handles, bars], loc="outside upper center", ncols=4, frameon=False, fontsize=8)
    figure.savefig(target, dpi=theme.PNG_DPI)


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the tables, and write what is asked for; exit status 1 if there is nothing to compare."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("real", nargs="+", type=Path, metavar="REAL", help="campaigns in real time")
    parser.add_argument("--virtual", nargs="+", type=Path, required=True, help="campaigns in virtual time")
    parser.add_argument("--fitted", nargs="+", default=[], metavar="CLIENT", help="clients that calibration used")
    parser.add_argument("--other-losses", action="store_true", help="compare runs with other losses, too")
    parser.add_argument("--metric", default=GOODPUT, help="default: goodput")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all verdicts")
    parser.add_argument("--figure", type=Path, metavar="FILE", help="draw the ratios of all servers")
    options = parser.parse_args(arguments)
    results = tuple(read([*options.real, *options.virtual]))
    campaigns = Campaigns(results, options.metric, frozenset(options.fitted), options.other_losses)
    fidelity = Fidelity(tuple(judge_pairs(campaigns)), tuple(judge_servers(campaigns)), campaigns.fitted)
    if not fidelity.pairs:
        print("No pair has succeeded with both clocks over the same link.", file=sys.stderr)
        return 1
    for table in filter(lambda each: each.rows, fidelity.tables()):
        print(render(table, "text", WIDTH), end="\n\n")
    if options.json:
        options.json.write_text(fidelity.document(campaigns), encoding="utf-8")
    if options.figure:
        draw(fidelity, options.figure)
    return 0


if __name__ == "__main__":
    sys.exit(main())
