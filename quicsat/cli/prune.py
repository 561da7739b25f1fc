"""``./run.py prune``: removes traces and logs of old campaigns to free disk space."""

import shutil
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

from quicsat.cli import console
from quicsat.cli.exit_status import ExitStatus
from quicsat.cli.program import CommandOptions, Program, flag, option
from quicsat.config import quantities
from quicsat.model.errors import MachineError, UserError

DAYS = quantities.within(quantities.count, "0", "36500")
SIZE = quantities.within(quantities.size, "0 B", "999999 GiB")
GROUP = "Maintain", 6
SUMMARY = "Remove traces and logs of old campaigns to free disk space."
DESCRIPTION = (
    "Remove the traces, and then the logs, of the oldest campaigns. Results are removed only with --keep. Without "
    "--yes, this command only lists the files to remove. It never changes campaigns that are pinned or in progress."
)
EXAMPLES = (
    'prune --traces 14 --min-free "50 GiB"   # show what would be removed',
    "prune --traces 14 --logs 60 --yes       # remove it",
)


class Options(CommandOptions, group="what to remove"):
    """The options of the command."""

    directory: Path | None = option(
        type=Path, nargs="?", metavar="DIR",
        help="Directory that contains the campaigns (default: results; example: /data/results).",
    )  # fmt: skip
    traces: int | None = option(
        "--traces", parse=DAYS, metavar="DAYS",
        help="Remove traces older than this many days (default: keep; example: 14).",
    )  # fmt: skip
    logs: int | None = option(
        "--logs", parse=DAYS, metavar="DAYS",
        help="Remove qlogs and endpoint logs older than this many days (default: keep; example: 60).",
    )  # fmt: skip
    keep: int | None = option(
        "--keep", parse=quantities.within(quantities.count, "1", "1000000"), metavar="N",
        help="Remove all campaigns, with their results, except the newest N (default: keep all; example: 100).",
    )  # fmt: skip
    max_size: int | None = option(
        "--max-size", parse=SIZE, metavar="SIZE",
        help="Remove files until all campaigns together take up at most this much space "
        '(default: no limit; example: "200 GiB").',
    )  # fmt: skip
    min_free: int | None = option(
        "--min-free", parse=SIZE, metavar="SIZE",
        help='Remove files until this much disk space is free (default: no limit; example: "50 GiB").',
    )  # fmt: skip
    yes: bool = flag("--yes", help="Remove the files instead of only listing them.")


def run(options: Options, program: Program) -> int:
    """Print what was removed, or would be; raises MachineError if that does not free enough space."""
    from quicsat.results import prune
    from quicsat.results.store import JOURNAL, has

    place = options.directory or program.results
    if not place.is_dir():
        raise UserError(f"{place}: no such directory.")
    if has(place, JOURNAL):
        raise UserError(f"{place}: is a campaign. Pass the directory that contains the campaigns.")
    policy = prune.RetentionPolicy(
        _age(options.traces), _age(options.logs), options.keep, options.max_size, options.min_free
    )
    if policy == prune.RetentionPolicy():
        raise UserError(
            "Select what to remove with --traces DAYS, --logs DAYS, --keep N, --max-size SIZE or --min-free SIZE."
        )
    campaigns = prune.find_campaigns(place)
    free = shutil.disk_usage(place).free
    removals = prune.select_removals(campaigns, policy, datetime.now(UTC), free)
    if options.yes:
        chosen, removals = removals, prune.remove(removals)
        begun = {each.stored.directory for each in chosen} - {each.stored.directory for each in removals}
        campaigns = [replace(each, protected="in use") if each.directory in begun else each for each in campaigns]
    summary = prune.describe(removals, campaigns, done=options.yes)
    if shortage := prune.shortfall(removals, campaigns, policy, free):
        raise MachineError(f"{summary}\n{shortage}")
    console.show(summary)
    return ExitStatus.SUCCESS


def _age(days: int | None) -> timedelta | None:
    return None if days is None else timedelta(days=days)
