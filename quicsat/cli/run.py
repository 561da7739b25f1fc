"""``./run.py run``: measures the selected servers, clients and test cases; the default command."""

from quicsat.cli import campaign_report, new_campaign, select_runs
from quicsat.cli.campaign_options import NewCampaignOptions
from quicsat.cli.program import Program

GROUP = "Measure", 1
SUMMARY = "Measure servers with clients in the selected test cases (the default command)."
DESCRIPTION = (
    "Measure each selected server with each selected client in each selected test case, and print the results. "
    "Press Ctrl-C to stop the campaign, and use `./run.py resume` to continue it."
)
EXAMPLES = (
    "-s quic-go -c aioquic -t sat                          # one server, one client, one link",
    "-s picoquic:bbr picoquic:cubic -c quic-go -t SAT      # two congestion control algorithms",
    "-s quic-go@v0.54.1 quic-go -c aioquic -t SAT          # an earlier release, and the current version",
    "-s quic-go -c quic-go -t sat --repetitions 3 --parallel auto",
    "run -t SAT --seed 1 --shard 2/4 -l part-2             # a quarter of a campaign, see merge",
)


Options = NewCampaignOptions


def run(options: Options, program: Program) -> int:
    """Check all that needs no engine, measure, and print the results."""
    chosen = select_runs.select(options, program.root)
    request = new_campaign.check_files(options, program.root, chosen)
    with new_campaign.conditions(options, program, chosen.selection) as how:
        new_campaign.confirm_size(options, program, chosen.runs)
        from quicsat.execution import run_campaign

        new = new_campaign.new_campaign(options, program, chosen, request)
        with campaign_report.view(how.past, debug=options.debug) as observer:
            finished = run_campaign.run_campaign(new, how, observer)
        return campaign_report.conclude(finished, options, program, request)
