"""The stored campaigns that a command line names, and the test cases, pairs and objectives that it selects of them."""

from collections.abc import Collection, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from quicsat.cli import console, foreign_inputs
from quicsat.cli.foreign_inputs import CampaignsOptions
from quicsat.cli.program import Program, option
from quicsat.config import quantities
from quicsat.config.inventory import Inventory
from quicsat.model.errors import InputError, MachineError
from quicsat.model.names import did_you_mean, pair_folder
from quicsat.model.objective import Objective
from quicsat.model.results import Pair, ResultSet
from quicsat.model.stored_files import resolved
from quicsat.model.test_case import TestCase
from quicsat.model.text import escaped, quoted
from quicsat.report.plot_request import CampaignResults, Gallery, PlotRequest
from quicsat.statistics.conditions import times_in_words
from quicsat.statistics.facts import read_condition, where

PAIRS = option(
    "--pair", group="selection", nargs="+", metavar="SERVER_CLIENT", default=[],
    help="Pairs to show (default: all; example: picoquic_quic-go picoquic:bbr_quic-go).",
)  # fmt: skip
OBJECTIVES = option(
    "--objective", group="selection", nargs="+", metavar="SIZE=TIME", default=[],
    help="Time limits for receiving amounts of data (default: the objectives of each test case; example: 10MB=8s).",
)  # fmt: skip
PLACEBO = "A placebo shows only how alike equal builds are: pass it with --placebo to `compare` or `baseline save`."


def open_campaigns(options: CampaignsOptions, program: Program) -> tuple[CampaignResults, ...]:
    """The campaigns of the directories; warnings are printed, and an unknown test case raises InputError.

    A campaign that cannot be read is named and left out, unless it is the only one, or there is nothing of this name.
    """
    conditions = [read_condition(text) for text in options.fact]
    campaigns, problems = list[CampaignResults](), list[str]()
    for place, _ in foreign_inputs.staged(program, options.directories):
        try:
            found = _open(options, program, place, _label(place, campaigns))
        except InputError as error:
            if not place.exists():
                raise
            problems += error.problems
        else:
            campaigns.append(replace(found, results=where(found.results, conditions)))
            if conditions and not campaigns[-1].results.results:
                console.message(f"{found.label}: no run matches --fact {' '.join(map(quoted, options.fact))}.")
    if not campaigns:
        raise InputError(*problems)
    for problem in problems:
        console.message(f"{problem} It is left out.")
    check_tests(options.test, [campaign.results for campaign in campaigns])
    _check_clocks(campaigns)
    return tuple(campaigns)


def with_placebo(results: ResultSet, directory: Path | None) -> ResultSet:
    """A campaign with its placebo, if there is one; raises InputError if the directory has none of it."""
    from quicsat.results import store
    from quicsat.statistics import conditions

    if directory is None:
        return results
    return conditions.with_placebo(results, console.warn(store.load(directory)), str(directory))


def _open(options: CampaignsOptions, program: Program, place: Path, label: str) -> CampaignResults:
    """A campaign of quicsat or of another runner, whose result file, if there is one, is read before its runs."""
    from quicsat.results.qir_import import open_results
    from quicsat.results.store import DOCUMENT, has

    known = Inventory(program.root).implementations
    tree = foreign_inputs.runs_below(program, place)

    def read_runs(listed: Sequence[TestCase] = ()) -> CampaignResults:
        assert tree is not None
        record, series = foreign_inputs.read_runs(options, program, label, tree, listed)
        return CampaignResults(label, record.result_set, series, foreign=True)

    if tree is not None and not has(place, DOCUMENT):
        return read_runs()
    try:
        record = open_results(place, known)
    except InputError as error:
        if tree is None:
            raise
        for problem in error.problems:
            console.message(f"{problem} Only the traces are read.")
        return read_runs()
    results = console.warn(record)
    foreign = not results.manifest.tool_version
    directory = resolved(place) if place.is_dir() and tree is None else None
    of_runs = None if tree is None else partial(read_runs, results.manifest.test_cases)
    return CampaignResults(label, results, directory, foreign, of_runs)


def _label(place: Path, others: Sequence[CampaignResults]) -> str:
    """Name of the directory or file, with a number if it is taken."""
    whole = place.resolve()
    name = whole.name if place.is_dir() else whole.stem
    taken = {campaign.label for campaign in others}
    numbered = (f"{name}-{number}" for number in range(2, len(others) + 3))
    return name if name not in taken else next(label for label in numbered if label not in taken)


def _check_clocks(campaigns: Sequence[CampaignResults]) -> None:
    """Raise :class:`InputError` if statistics of these campaigns would mix clocks."""
    labels: dict[str, str] = {}
    manifests = [each.results.manifest for each in campaigns]
    for each, time in zip(campaigns, times_in_words(manifests), strict=True):
        labels.setdefault(time, each.label)
    if len(labels) > 1:
        what = "clocks" if len({each.clock for each in manifests}) > 1 else "CPU costs or perturbations"
        listed = ", ".join(f"{label} ran in {time}" for time, label in labels.items())
        told = [PLACEBO] if any(each.placebo for each in manifests) else []
        raise InputError(f"Results of different {what} are never put together: {listed}.", *told)


def check_tests(wanted: Sequence[str], results: Sequence[ResultSet]) -> None:
    """Raise :class:`InputError` with each of the names that is that of no test case of any campaign."""
    cases = [case for each in results for case in each.manifest.test_cases]
    known = [name for case in cases for name in (case.name, case.abbreviation)]
    known += {case.family.name: None for case in cases if case.family}
    problems = [
        f"These results have no test case {quoted(name)}.{did_you_mean(name, known)}"
        for name in wanted
        if not any(case.has_label(name) for case in cases)
    ]
    if problems:
        raise InputError(*problems)


def draw(program: Program, request: PlotRequest) -> Gallery:
    """Draw figures; raises MachineError if the command line was started without plots."""
    if program.draw is None:
        raise MachineError("Figures cannot be drawn here. Start the command line with ./run.py.")
    return program.draw(request)


def show_files(gallery: Gallery, *more: Path) -> None:
    """Print the names of the figures, and of ``more`` files; then raise InputError if others were in their places."""
    if names := [escaped(str(file)) for file in (*gallery.files, *more)]:
        console.show("\n".join(names))
    if gallery.refused:
        raise InputError(*gallery.refused)


def test_cases(results: ResultSet, wanted: Sequence[str]) -> Sequence[TestCase]:
    """The wanted test cases of a campaign; all if none is named."""
    if not wanted:
        return results.manifest.test_cases
    cases = (case for name in wanted for case in results.manifest.test_cases if case.has_label(name))
    return list(dict.fromkeys(cases))


def two_test_cases(wanted: Sequence[str]) -> tuple[str, str]:
    """Both names of ``-t``; raises InputError if there are fewer or more."""
    if len(wanted) != 2:
        raise InputError("Select two test cases with -t, for example -t SAT SATL.")
    return wanted[0], wanted[1]


def pairs(wanted: Sequence[str], campaigns: Sequence[CampaignResults]) -> tuple[Pair, ...]:
    """Server and client of each wanted ``SERVER_CLIENT``, which may also be the name of the pair's directory.

    Raises InputError if no campaign has such a pair.
    """
    results = (result for campaign in campaigns for result in campaign.results.results)
    return pairs_of(wanted, dict.fromkeys((result.server, result.client) for result in results))


def pairs_of(wanted: Sequence[str], found: Collection[Pair]) -> tuple[Pair, ...]:
    """As :func:`pairs`, of the pairs that were ``found``."""
    folders = {pair_folder(*pair): pair for pair in found}
    known = {"_".join(pair): pair for pair in found}
    problems = [
        f"These results have no pair {quoted(name)} (SERVER_CLIENT).{did_you_mean(name, known)}"
        for name in wanted
        if name not in known and name not in folders
    ]
    if problems:
        raise InputError(*problems, f"Known: {', '.join(sorted(known))}.")
    return tuple((known | folders)[name] for name in wanted)


def objectives(texts: Sequence[str]) -> tuple[Objective, ...]:
    """The objectives of ``SIZE=TIME`` texts; raises InputError."""
    return tuple(map(_objective, texts))


def _objective(text: str) -> Objective:
    size, sign, time = text.partition("=")
    try:
        if not sign:
            raise ValueError("has no =.")
        found = Objective(quantities.size(size), quantities.duration(time))
        if found.size <= 0 or found.limit <= 0:
            raise ValueError("must be more than 0 bytes in more than 0 s.")
    except ValueError as error:
        raise InputError(f"Objective {quoted(text)}: {error} Write SIZE=TIME, for example 10MB=5s.") from error
    return found
