"""What ``run.py tables``, ``plot`` and ``compare`` do: stored results -> text and files; their options, too.

Nothing is measured and no trace is opened. What takes long to load is loaded when it is needed.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from interop import quantities
from interop.errors import InputError
from interop.model import Implementation, ResultSet, TestCase
from interop.names import did_you_mean, quoted
from interop.pictures import FORMATS, Campaign, Wish
from interop.statistics.objectives import Objective
from interop.statistics.samples import find

if TYPE_CHECKING:
    from interop.sheets import Sheet

TABLES = (
    "summary", "pairs", "congestion", "implementations", "variance", "clusters", "groups", "links", "accesses", "loss",
    "sweep", "runs", "senders", "times", "objectives", "attempts", "history",
)  # fmt: skip
TEXT_FORMATS = ("text", "markdown", "csv", "latex")
SUCCESS, WORSE_THAN_BEFORE = 0, 1


@dataclass(frozen=True)
class Report:
    """What a command came to."""

    text: str
    warnings: tuple[str, ...] = ()
    status: int = SUCCESS


# ---- options --------------------------------------------------------------------------------


def add(command: Callable[[str, str], argparse.ArgumentParser]) -> None:
    """Add all three; ``command`` makes the parser of one from its name and what it does."""
    _add_tables(command("tables", "show statistics of stored results"))
    _add_plot(command("plot", "draw figures of stored results"))
    _add_compare(command("compare", "what has changed between two campaigns; exit status 1 if for worse"))


def _add_tables(parser: argparse.ArgumentParser) -> None:
    _add_directories(parser)
    parser.add_argument("--table", nargs="+", choices=TABLES, metavar="TABLE", default=[],
                        help=f"some of {', '.join(TABLES)}; default: summary, or history")  # fmt: skip
    parser.add_argument("--format", choices=TEXT_FORMATS, default="text")
    parser.add_argument("--pair", nargs="+", metavar="SERVER_CLIENT", default=[], help="pairs for table objectives")
    _add_objectives(parser)
    parser.set_defaults(carry_out=tables)


def _add_plot(parser: argparse.ArgumentParser) -> None:
    _add_directories(parser)
    parser.add_argument("-p", "--plot", nargs="+", metavar="NAME", default=[], help="plots; default: all there can be")
    parser.add_argument("-o", "--output", type=Path, metavar="DIR", help="default: plots/ in the first campaign")
    parser.add_argument("--format", nargs="+", choices=FORMATS, default=["svg"], metavar="FORMAT",
                        help=f"some of {', '.join(FORMATS)}")  # fmt: skip
    parser.add_argument("--pair", nargs="+", metavar="SERVER_CLIENT", default=[], help="pairs for figures over runs")
    parser.add_argument("--metric", metavar="NUMBER", default="",
                        help="what cdf, box, heatmap, swarm and dates show: completion_time, rtt_median …")  # fmt: skip
    parser.add_argument("--without-failed", action="store_true", help="leave failed runs out instead of 0 %%")
    parser.add_argument("--own-scale", action="store_true", help="each heatmap has a scale of its own")
    parser.add_argument("--overlay", action="store_true", help="all pairs and test cases in one figure over runs")
    parser.add_argument("--no-ideal", action="store_true", help="do not show what the link itself would allow")
    _add_objectives(parser)
    parser.set_defaults(carry_out=plot)


def _add_compare(parser: argparse.ArgumentParser) -> None:
    _add_directories(parser)
    parser.add_argument("--all", action="store_true", help="pairs without a change, too")
    parser.add_argument("--format", choices=TEXT_FORMATS, default="text")
    parser.add_argument("--plot", type=Path, metavar="DIR", help="draw the comparison into this directory, too")
    parser.set_defaults(carry_out=compare)


def _add_objectives(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--objective", nargs="+", metavar="SIZE=TIME", default=[],
                        help="what should have arrived how soon, 10MB=5s; default: as in the SATCOM paper")  # fmt: skip


def _add_directories(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("directories", type=Path, nargs="+", metavar="DIR",
                        help="campaign directories, or result files of QIR or QIR-SE")  # fmt: skip
    parser.add_argument("-t", "--test", nargs="+", metavar="NAME", default=[], help="test cases; default: all")


# ---- campaigns ------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Opened:
    campaigns: tuple[Campaign, ...]
    warnings: tuple[str, ...]


def _open(options: argparse.Namespace, known: Mapping[str, Implementation]) -> _Opened:
    from interop.foreign import open_results

    campaigns, warnings = list[Campaign](), list[str]()
    for place in options.directories:
        record = open_results(place, known)
        warnings += record.warnings
        campaigns.append(Campaign(_label(place, campaigns), record.result_set, place if place.is_dir() else None))
    _check_tests(options.test, [campaign.results for campaign in campaigns])
    return _Opened(tuple(campaigns), tuple(warnings))


def _label(place: Path, others: Sequence[Campaign]) -> str:
    """Name of the directory or file, with a number if it is taken."""
    whole = place.resolve()
    name = whole.name if place.is_dir() else whole.stem
    taken = {campaign.label for campaign in others}
    numbered = (f"{name}-{number}" for number in range(2, len(others) + 3))
    return name if name not in taken else next(label for label in numbered if label not in taken)


def _check_tests(wanted: Sequence[str], results: Sequence[ResultSet]) -> None:
    known = [name for each in results for case in each.manifest.test_cases for name in (case.name, case.abbreviation)]
    problems = [
        f"These results have no test case {quoted(name)}.{did_you_mean(name, known)}"
        for name in wanted
        if not any(find(each, name) for each in results)
    ]
    if problems:
        raise InputError(*problems)


def _cases(results: ResultSet, wanted: Sequence[str]) -> Sequence[TestCase]:
    if not wanted:
        return results.manifest.test_cases
    return [case for name in wanted if (case := find(results, name)) is not None]


# ---- commands -------------------------------------------------------------------------------


def tables(options: argparse.Namespace, known: Mapping[str, Implementation], width: int | None) -> Report:
    """The tables that were asked for, of each campaign."""
    from interop import reports
    from interop.sheets import render

    opened = _open(options, known)
    several = len(opened.campaigns) > 1
    sheets = list[tuple[str, "Sheet"]]()
    for name in options.table or (["history"] if several else ["summary"]):
        if name == "history":
            results = [campaign.results for campaign in opened.campaigns]
            cases = {case.name: case for each in results for case in _cases(each, options.test)}
            sheets.append(("", reports.history(results, list(cases.values()))))
            continue
        for campaign in opened.campaigns:
            sheets += [(campaign.label, sheet) for sheet in _sheets(name, campaign, options)]
    texts = [
        (f"{label}\n\n" if several and label and options.format == "text" else "")
        + render(sheet, options.format, width)
        for label, sheet in sheets
    ]
    return Report("\n\n".join(texts), opened.warnings)


def _sheets(name: str, campaign: Campaign, options: argparse.Namespace) -> Sequence[Sheet]:
    """The tables of this name of one campaign."""
    from interop import attempt_reports, reports, run_reports

    results = campaign.results
    cases = _cases(results, options.test)
    if name == "attempts":
        return [attempt_reports.attempts(results, cases)]
    if name == "clusters":
        return [reports.clusters(results, *_two(options.test))]
    if name == "groups":
        if len(cases) == 1:
            return run_reports.groups_of_runs(results, cases[0])
        return run_reports.groups_of_pairs(results, *_two(options.test))
    if name == "objectives":
        wish = Wish((campaign,), Path(), test_cases=tuple(options.test), pairs=_pairs(options.pair, [campaign]),
                    objectives=tuple(map(_objective, options.objective)))  # fmt: skip
        return [run_reports.objectives_met(wish)]
    return [(reports.PER_CAMPAIGN | run_reports.PER_CAMPAIGN)[name](results, cases)]


def _two(tests: Sequence[str]) -> tuple[str, str]:
    if len(tests) != 2:
        raise InputError("Two test cases are needed to relate them: name them with -t, for example -t SAT SATL.")
    return tests[0], tests[1]


def plot(options: argparse.Namespace, known: Mapping[str, Implementation], _width: int | None) -> Report:
    """Draw what was asked for; the files' names."""
    opened = _open(options, known)
    first = options.directories[0]
    target = options.output or (first if first.is_dir() else first.parent) / "plots"
    wish = Wish(
        campaigns=opened.campaigns,
        target=target,
        plots=tuple(options.plot),
        formats=tuple(dict.fromkeys(options.format)),
        test_cases=tuple(options.test),
        pairs=_pairs(options.pair, opened.campaigns),
        without_failed=options.without_failed,
        own_scale=options.own_scale,
        overlaid=options.overlay,
        ideal=not options.no_ideal,
        metric=options.metric,
        objectives=tuple(map(_objective, options.objective)),
    )
    gallery = options.draw(wish)
    skipped = tuple(f"not drawn: {each}" for each in gallery.skipped)
    if not gallery.files:
        raise InputError("There is nothing to draw.", *skipped)
    return Report("\n".join(map(str, gallery.files)), (*opened.warnings, *skipped))


def _pairs(wanted: Sequence[str], campaigns: Sequence[Campaign]) -> tuple[tuple[str, str], ...]:
    """Server and client of each pair that is named as SERVER_CLIENT."""
    results = (result for campaign in campaigns for result in campaign.results.results)
    known = {f"{result.server}_{result.client}": (result.server, result.client) for result in results}
    problems = [
        f"These results have no pair {quoted(name)}, written SERVER_CLIENT.{did_you_mean(name, known)}"
        for name in wanted
        if name not in known
    ]
    if problems:
        raise InputError(*problems, f"Known: {', '.join(sorted(known))}.")
    return tuple(known[name] for name in wanted)


def _objective(text: str) -> Objective:
    size, sign, time = text.partition("=")
    try:
        if not sign:
            raise ValueError("has no =.")
        found = Objective(quantities.size(size), quantities.duration(time))
        if found.size <= 0 or found.limit <= 0:
            raise ValueError("must be more than 0 bytes in more than 0 s.")
    except ValueError as error:
        raise InputError(f"Objective {quoted(text)}: {error} Write it SIZE=TIME, for example 10MB=5s.") from error
    return found


def compare(options: argparse.Namespace, known: Mapping[str, Implementation], width: int | None) -> Report:
    """Two campaigns, or two test cases of one; the status is 1 if one campaign is significantly worse."""
    from interop import reports
    from interop.sheets import Unit, render
    from interop.statistics import comparison

    if len(options.directories) > 2:
        raise InputError("Two campaigns can be compared; for more of them see run.py tables --table history.")
    opened = _open(options, known)
    first, second = opened.campaigns[0], opened.campaigns[-1]
    worse = False
    if len(opened.campaigns) == 1:
        cases = [find(first.results, name) for name in _two(options.test)]
        found = comparison.links(first.results, *(case for case in cases if case is not None))
        sheet = reports.comparison(found, *_two(options.test), Unit.SHARE, everything=options.all)
    else:
        chosen = _cases(first.results, options.test)
        if not {case.name for case in chosen} & {case.name for case in second.results.manifest.test_cases}:
            raise InputError(f"{first.label} and {second.label} have no test case in common to compare.")
        found = comparison.campaigns(first.results, second.results, chosen)
        sheet = reports.comparison(found, first.label, second.label, everything=options.all)
        worse = found.worse
    text = render(sheet, options.format, width)
    if options.plot is not None:
        wish = Wish(opened.campaigns, options.plot, ("comparison",), test_cases=tuple(options.test))
        text += "\n\n" + "\n".join(map(str, options.draw(wish).files))
    return Report(text, opened.warnings, WORSE_THAN_BEFORE if worse else SUCCESS)
