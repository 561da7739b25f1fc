"""What you see of a campaign: its progress, its matrices, the summary at its end, and its exit status."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import chain
from typing import TYPE_CHECKING

from quicsat.cli import console, continuous_integration, export
from quicsat.cli.exit_status import SIGNAL, ExitStatus
from quicsat.cli.options import QIR_SE
from quicsat.cli.outcome_status import exit_status_of
from quicsat.cli.program import Program
from quicsat.cli.progress import lines
from quicsat.model.errors import UserError
from quicsat.model.outcomes import Outcome
from quicsat.model.results import ResultSet
from quicsat.model.text import command_line, counted, escaped
from quicsat.report import functional_table, terminal_tables

if TYPE_CHECKING:
    from quicsat.cli.campaign_options import ContinuedOptions
    from quicsat.execution.campaign_config import CampaignOutcome
    from quicsat.execution.observer import Observer

UNSTORED = {
    "--hosts": "hosts", "--cluster": "cluster", "--cluster-tls": "cluster_tls", "-j": "json",
    "--json-format": "json_format", "--expect": "expect",
    "--junit": "junit", "--comment": "comment",
}  # fmt: skip
"""With a value: options that a campaign does not store, so that the command to continue it repeats them."""


@contextmanager
def view(past: Sequence[ResultSet], *, debug: bool = False) -> Iterator[Observer]:
    """A live view if messages go to a terminal, else lines; so too with debug messages, which would tear it apart."""
    if debug or not console.live():
        yield lines(past)
        return
    from quicsat.cli.live_view import LiveView

    with LiveView(past).shown() as live:
        yield live.observer


def show_results(results: ResultSet, *, markdown: bool) -> None:
    """Print the matrices of a campaign, its failures, and the time that it took."""
    colour, width = console.colour(), console.width()
    if functional := functional_table.matrix(results, colour=colour, width=width, markdown=markdown):
        console.show(f"{functional}\n")
    for case in (case for case in results.manifest.test_cases if not case.functional):
        matrix = terminal_tables.matrix(results, case.name, colour=colour, width=width, markdown=markdown)
        console.show(f"{matrix}\n")
    if any(result.verdict.outcome is not Outcome.SUCCEEDED for result in results.results):
        console.show(f"{terminal_tables.failures(results, colour=colour, width=width, markdown=markdown)}\n")
    if results.results:
        console.show(terminal_tables.overhead(results, width=width, markdown=markdown))


def conclude(
    finished: CampaignOutcome, options: ContinuedOptions, program: Program, request: continuous_integration.CiRequest
) -> int:
    """Print and write the results of a campaign that ended or was interrupted; the exit status.

    ``options``: of ``run`` or ``resume``. Raises InputError if it cannot be compared with the
    baseline of ``request``.
    """
    results = finished.record.result_set
    show_results(results, markdown=options.markdown)
    console.show(f"\nResults: {escaped(str(finished.directory))}")
    if finished.stopped:
        kept = (
            f"{len(results.done)} of {counted(results.manifest.planned_runs, 'run is', 'runs are')} "
            "finished and stored."
        )
        given = [(flag, file) for flag, name in UNSTORED.items() if (file := getattr(options, name)) is not None]
        command = command_line("resume", finished.directory, *chain(*given), *["--github"] * options.github)
        console.message(f"{finished.stopped}\n{kept}\nTo continue: {command}")
    elif skipped := sum(result.verdict.outcome is Outcome.SKIPPED for result in results.results):
        again = ["--no-skip-on-failure"] * results.manifest.schedule.skip_on_failure + ["--retry", "skipped"]
        command = command_line("resume", finished.directory, *again)
        console.message(f"{counted(skipped, 'run was', 'runs were')} skipped. To make the skipped runs: {command}")
    try:
        status = _write(finished, options, program, request)
    except UserError as error:
        if finished.signal is None:
            raise
        console.message(str(error))
    if finished.stopped:
        return status_of_stopped(finished)
    return exit_status_of(results) if status is None else status


def status_of_stopped(campaign: CampaignOutcome) -> int:
    """The exit status of a campaign that ended early."""
    if campaign.signal is not None:
        return SIGNAL + campaign.signal
    return ExitStatus.MACHINE if campaign.fault else ExitStatus.TIME_UP


def _write(
    finished: CampaignOutcome, options: ContinuedOptions, program: Program, request: continuous_integration.CiRequest
) -> ExitStatus | None:
    """Write the files that were asked for; the exit status if expectations decide it."""
    results = finished.record.result_set
    if options.json:
        export.write(results, finished.directory, options.json, options.json_format or QIR_SE)
    return continuous_integration.conclude(request, results, finished.directory, program.draw)
