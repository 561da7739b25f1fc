"""What you see of a campaign: its matrices, the summary at its end, and its exit status."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from interop.cli import console, continuous_integration
from interop.cli.exit_status import SIGNAL, ExitStatus, exit_status_of
from interop.model.outcomes import Outcome
from interop.model.results import ResultSet
from interop.report import functional_table, terminal_tables

if TYPE_CHECKING:
    from interop.execution.run_campaign import CampaignOutcome


def show_results(results: ResultSet, *, markdown: bool) -> None:
    """Print the matrices of a campaign, its failures, and the time that it took."""
    colour, width = console.colour(), console.width()
    if functional := functional_table.matrix(results, colour=colour, markdown=markdown):
        console.show(f"{functional}\n")
    for case in (case for case in results.manifest.test_cases if not case.functional):
        matrix = terminal_tables.matrix(results, case.name, colour=colour, width=width, markdown=markdown)
        console.show(f"{matrix}\n")
    if any(result.verdict.outcome is not Outcome.SUCCEEDED for result in results.results):
        console.show(f"{terminal_tables.failures(results, colour=colour, width=width, markdown=markdown)}\n")
    if results.results:
        console.show(terminal_tables.overhead(results, markdown=markdown))


def conclude(finished: CampaignOutcome, options: argparse.Namespace, request: continuous_integration.CiRequest) -> int:
    """Print and write the results of a campaign that ended or was interrupted; the exit status.

    ``options``: of :func:`interop.cli.options.add_output`. Raises InputError if it cannot be compared with the
    baseline of ``request``.
    """
    results = finished.record.result_set
    show_results(results, markdown=options.markdown)
    if options.json:
        from interop.cli.export import log_directory
        from interop.results import qir_export

        document = qir_export.to_qir_se(results, log_directory(finished.directory, options.json))
        qir_export.write_json(options.json, document)
    console.show(f"\nResults: {finished.directory}")
    done = sum(result.verdict.outcome is not Outcome.ERROR for result in results.results)
    kept = f"{done} of {results.manifest.planned_runs} runs are finished and stored."
    more = f"To continue: ./run.py resume {finished.directory}"
    if finished.signal is not None:
        console.message(f"Stopped by signal {finished.signal}. {kept}\n{more}")
        return SIGNAL + finished.signal
    if ended := finished.fault or finished.out_of_time:
        console.message(f"{ended}\n{kept}\n{more}")
    status = continuous_integration.conclude(request, results, finished.directory, options.draw)
    if ended:
        return ExitStatus.MACHINE if finished.fault else ExitStatus.TIME_UP
    return exit_status_of(results) if status is None else status
