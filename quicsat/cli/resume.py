"""``./run.py resume``: continues an interrupted campaign with the same plan, seeds, images and options."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from quicsat.cli import campaign_options, campaign_report, continuous_integration, other_runners
from quicsat.cli import options as shared
from quicsat.cli.commands import parser_of
from quicsat.cli.program import CommandOptions, Program, option
from quicsat.cli.progress import earlier_campaigns
from quicsat.model.clock import Clock
from quicsat.model.errors import InputError
from quicsat.model.outcomes import Outcome
from quicsat.model.text import command_line

if TYPE_CHECKING:
    from quicsat.model.real_link import Host
    from quicsat.plan.limits import CampaignLimits
    from quicsat.results.document import StoredResults

GROUP = "Measure", 4
SUMMARY = "Continue a campaign that was interrupted."
DESCRIPTION = (
    "Continue a campaign with its original plan, seeds, images and options. Finished runs are kept, and runs that "
    "ended in an error are repeated."
)
EXAMPLES = (
    "resume                                   # the newest campaign",
    "resume results/a --retry failed timeout  # also repeat failures and timeouts",
)
REPEATABLE = [
    outcome.value for outcome in (Outcome.FAILED, Outcome.TIMEOUT, Outcome.UNSUPPORTED, Outcome.SKIPPED, Outcome.ERROR)
]
CONTINUING = ("gate", "confirm", "bisect")
"""Commands that make several campaigns, and continue them if they are repeated."""
RETRY = option(
    "--retry", nargs="+", action="extend", default=[], choices=REPEATABLE, metavar="OUTCOME",
    help=f"Also repeat runs with these outcomes: {', '.join(REPEATABLE)} (default: error; example: failed timeout).",
)  # fmt: skip


class RetryOptions(CommandOptions, group="selection"):
    """Which finished runs of a campaign are repeated."""

    retry: list[str] = RETRY


class ContinueOptions(RetryOptions, shared.ScheduleOptions, campaign_options.ContinuedOptions):
    """Those that decide what is left of a campaign, and how it is run."""


class Options(ContinueOptions, group="options of QIR-SE"):
    """The options of the command."""

    directory: Path | None = shared.CAMPAIGN
    retry_failed: None = other_runners.RETRY_FAILED

    @staticmethod
    def hint(word: str) -> str:
        """A sentence about an option that only ``run`` has."""
        flags = {flag for action in parser_of("run")._actions for flag in action.option_strings}
        return f" A campaign continues with its own plan and options; leave {word} out." if word in flags else ""


@dataclass(frozen=True)
class Continued:
    """A campaign to continue, and what the options mean for it."""

    directory: Path
    stored: StoredResults
    limits: CampaignLimits
    machines: Mapping[str, Host]
    request: continuous_integration.CiRequest


def check(options: ContinueOptions, root: Path, directory: Path, *, report: bool = True) -> Continued:
    """Read the campaign and the files that options name; raises InputError with what keeps it from being continued.

    ``report``: also write the fault into the reports that were asked for.
    """
    from quicsat.results import store

    if directory.is_dir() and not store.is_campaign(directory) and (inside := store.newest(directory, 1)):
        words = inside[0].manifest.command[1:]
        advice = "Name one of them."
        if words and words[0] in CONTINUING:
            advice = (
                f"To continue them, repeat the command {words[0]} that made them, with the full paths of its files: "
                f"{command_line(*words)}"
            )
        raise InputError(f"{directory}: holds several campaigns. {advice}")
    stored = store.load_to_continue(directory)
    begun = stored.result_set.manifest
    if begun.clock is Clock.VIRTUAL and begun.cpu_cost_factor is None:
        raise InputError(
            f"{directory}: has CPU costs per system call, which this version does not have. Start a new campaign."
        )
    names = (*begun.servers, *begun.clients)
    request = continuous_integration.read_request(options, root, names, begun.test_cases, directory)
    other_runners.check_earlier_results(options.json, root / "results", directory)
    continuous_integration.check_manifest(request, begun, report=report)
    limits = shared.limits(options, os.environ, begun.schedule, begun.test_cases)
    machines = shared.machines(options, begun.test_cases)
    return Continued(directory, stored, limits, machines, request)


def outcomes(options: ContinueOptions) -> list[Outcome]:
    """Those of ``--retry``."""
    return [Outcome(word) for word in options.retry]


def run(options: Options, program: Program) -> int:
    """Check all that needs no engine, run what is left, and print the results."""
    continued = check(options, program.root, options.directory or program.results / "latest")
    with shared.engine_for_itself(options, program):
        return measure(options, program, continued)


def measure(options: ContinueOptions, program: Program, continued: Continued) -> int:
    """Carry the runs out, and print the results; only here are the libraries imported that this takes."""
    from quicsat.execution import campaign_config, run_campaign

    begun = continued.stored.result_set.manifest
    conditions = campaign_config.Conditions(
        shared.daemon(),
        continued.machines,
        shared.cluster(options),
        shared.most_testbeds(options, begun.schedule),
        continued.limits,
        earlier_campaigns(program.root, begun.clock, continued.stored.result_set),
        program.root,
        wait=options.wait,
    )
    with campaign_report.view(conditions.past, debug=options.debug) as observer:
        finished = run_campaign.resume_campaign(continued.directory, outcomes(options), conditions, observer)
    return campaign_report.conclude(finished, options, program, continued.request)
