"""``./run.py tables``: shows statistics of stored campaigns as text, Markdown, CSV or LaTeX."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from quicsat.cli import console, stored_campaigns
from quicsat.cli import options as shared
from quicsat.cli.exit_status import ExitStatus
from quicsat.cli.foreign_inputs import CampaignsOptions
from quicsat.cli.program import Program, option
from quicsat.model.clock import Clock
from quicsat.report.plot_request import CampaignResults, PlotRequest
from quicsat.report.table import Table, render

TABLES = (
    "summary", "pairs", "families", "congestion", "implementations", "variance", "clusters", "groups", "links",
    "accesses", "loss", "sweep", "runs", "senders", "times", "objects", "flows", "time-shares", "parity", "proxies",
    "negotiated", "objectives", "attempts", "history",
)  # fmt: skip
GROUP = "Results", 2
SUMMARY = "Show statistics of campaigns as text, Markdown, CSV or LaTeX."
DESCRIPTION = "Show statistics of campaigns. This command uses only stored results, and does not read traces."
EXAMPLES = (
    "tables results/latest --table pairs variance",
    "tables results/latest -t SAT --table pairs --format csv",
    "tables results/latest --table objectives --objective 10MB=8s",
    "tables results/latest --table parity      # time over QUIC, relative to TCP",
    "tables results/a results/b results/c      # history: how pairs changed from campaign to campaign",
)


class Options(CampaignsOptions, group="output"):
    """The options of the command."""

    table: list[str] = option(
        "--table", group="selection", nargs="+", choices=TABLES, metavar="TABLE", default=[],
        help=f"Tables to show: {', '.join(TABLES)} (default: summary, or history for several campaigns; "
        "example: pairs).",
    )  # fmt: skip
    pair: list[str] = stored_campaigns.PAIRS
    objective: list[str] = stored_campaigns.OBJECTIVES
    format: str = shared.FORMAT


def run(options: Options, program: Program) -> int:
    """Print the tables of each campaign."""
    from quicsat.report import campaign_tables

    opened = stored_campaigns.open_campaigns(options, program)
    pairs = stored_campaigns.pairs(options.pair, opened)
    campaigns = [campaign.of_pairs(pairs) for campaign in opened]
    several = len(campaigns) > 1
    tables = list[tuple[str, "Table"]]()
    for name in options.table or (["history"] if several else ["summary"]):
        if name == "history":
            results = [campaign.results for campaign in campaigns]
            cases = {case.name: case for each in results for case in stored_campaigns.test_cases(each, options.test)}
            tables.append(("", campaign_tables.history(results, list(cases.values()))))
            continue
        for campaign in campaigns:
            tables += [(campaign.label, table) for table in _tables(name, campaign, options)]
    manifest = campaigns[0].results.manifest
    if manifest.clock is Clock.VIRTUAL:
        label, last = tables[-1]
        tables[-1] = label, replace(last, notes=(*last.notes, f"The runs used {manifest.time}."))
    if options.format == "csv":  # has no place for notes
        for note in dict.fromkeys(note for _, table in tables if not table.rows for note in table.notes):
            console.message(note)
    texts = [
        (f"{label}\n\n" if several and label and options.format == "text" else "")
        + render(table, options.format, console.width())
        for label, table in tables
    ]
    console.show("\n\n".join(texts))
    return ExitStatus.SUCCESS


def _tables(name: str, campaign: CampaignResults, options: Options) -> Sequence[Table]:
    """The tables of this name of one campaign."""
    from quicsat.report import (
        attempt_tables,
        campaign_tables,
        flow_tables,
        negotiated_tables,
        object_tables,
        parity_table,
        proxy_table,
        run_tables,
        time_share_tables,
    )

    results = campaign.results
    cases = stored_campaigns.test_cases(results, options.test)
    if name == "clusters":
        return [campaign_tables.clusters(results, *stored_campaigns.two_test_cases(options.test))]
    if name == "groups":
        if len(cases) == 1:
            return run_tables.groups_of_runs(results, cases[0])
        return run_tables.groups_of_pairs(results, *stored_campaigns.two_test_cases(options.test))
    if name == "objectives":
        request = PlotRequest(
            (campaign,),
            Path(),
            test_cases=tuple(options.test),
            pairs=results.selected or (),
            objectives=stored_campaigns.objectives(options.objective),
        )
        table = run_tables.objectives_met(request)
        for warning in request.warnings:
            console.message(warning)
        return [table]
    per_campaign = (
        campaign_tables.PER_CAMPAIGN
        | run_tables.PER_CAMPAIGN
        | {
            "attempts": attempt_tables.attempts,
            "flows": flow_tables.flows,
            "negotiated": negotiated_tables.negotiated,
            "objects": object_tables.objects,
            "parity": parity_table.parity,
            "proxies": proxy_table.proxies,
            "time-shares": time_share_tables.time_shares,
        }
    )
    return [per_campaign[name](results, cases)]
