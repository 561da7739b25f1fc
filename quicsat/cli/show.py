"""``./run.py show``: shows the matrices of a stored campaign."""

from pathlib import Path

from quicsat.cli import campaign_report, console
from quicsat.cli import options as shared
from quicsat.cli.outcome_status import exit_status_of
from quicsat.cli.program import CommandOptions, Program, flag

GROUP = "Results", 1
SUMMARY = "Show the matrices of a campaign."
DESCRIPTION = (
    "Show the matrices of a campaign. The exit status is the same as the exit status of the campaign, or 1 if "
    "runs are missing."
)
EXAMPLES = ("show", "show results/a --markdown")


class Options(CommandOptions, group="output"):
    """The options of the command."""

    directory: Path | None = shared.CAMPAIGN
    negotiated: bool = flag(
        "--negotiated", help="Also show what the endpoints negotiated: version, cipher and transport parameters."
    )
    markdown: bool = shared.MARKDOWN


def run(options: Options, program: Program) -> int:
    """Print the matrices."""
    from quicsat.results import store

    results = console.warn(store.load(options.directory or program.results / "latest"))
    campaign_report.show_results(results, markdown=options.markdown)
    if options.negotiated:
        from quicsat.report import negotiated_tables
        from quicsat.report.table import render

        table = negotiated_tables.negotiated(results, results.manifest.test_cases)
        console.show(render(table, "markdown" if options.markdown else "text", console.width()))
    if results.lacking:
        from quicsat.statistics.comparison import progress

        console.message(progress(results))
    return exit_status_of(results)
