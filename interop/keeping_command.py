"""What `./run.py merge` and `./run.py prune` do, and their options."""

from __future__ import annotations

import argparse
import shutil
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

from interop import quantities
from interop.errors import MachineError, UserError
from interop.options import worded
from interop.store import JOURNAL

DAYS = worded(quantities.within(quantities.count, "0", "36500"))
SIZE = worded(quantities.within(quantities.size, "0 B", "999999 GiB"))


def add(command: Callable[[str, str], argparse.ArgumentParser], root: Path) -> None:
    """Both commands; ``root``: the checkout."""
    merging = command("merge", "put the parts of a plan (--shard) together into one campaign")
    merging.add_argument("directories", type=Path, nargs="+", metavar="DIR", help="campaigns, one for each part")
    merging.add_argument("-o", "--output", type=Path, required=True, metavar="DIR", help="the directory to make")
    merging.set_defaults(carry_out=merge)
    pruning = command("prune", "make room: remove traces, then logs, of the oldest campaigns; shows what without --yes")
    pruning.add_argument("directory", type=Path, nargs="?", default=root / "results", metavar="DIR")
    pruning.add_argument("--traces", type=DAYS, metavar="DAYS", help="remove traces that are older")
    pruning.add_argument("--logs", type=DAYS, metavar="DAYS", help="remove qlogs and logs of endpoints that are older")
    pruning.add_argument(
        "--keep", type=worded(quantities.within(quantities.count, "1", "1000000")), metavar="N",
        help="remove campaigns as a whole but the newest N; without it results stay for ever",
    )  # fmt: skip
    pruning.add_argument("--max-size", type=SIZE, metavar="SIZE", help='of all campaigns together, "200 GiB"')
    pruning.add_argument("--min-free", type=SIZE, metavar="SIZE", help='to be free on the disk, "50 GiB"')
    pruning.add_argument("--yes", action="store_true", help="remove it")
    pruning.set_defaults(carry_out=prune)


def merge(options: argparse.Namespace) -> str:
    """What was made."""
    from interop import merge as merging

    return merging.merge(options.directories, options.output)


def prune(options: argparse.Namespace) -> str:
    """What was removed, or would be; MachineError with it if the room that was asked for is not reached."""
    from interop import prune as pruning

    if not options.directory.is_dir():
        raise UserError(f"{options.directory}: no such directory; nothing can be made room for there")
    if (options.directory / JOURNAL).exists():
        raise UserError(f"{options.directory}: is a campaign. Name the directory that holds the campaigns.")

    def days(number: int | None) -> timedelta | None:
        return None if number is None else timedelta(days=number)

    rules = pruning.Rules(days(options.traces), days(options.logs), options.keep, options.max_size, options.min_free)
    if rules == pruning.Rules():
        raise UserError("What may go? Say --traces DAYS, --logs DAYS, --keep N, --max-size SIZE or --min-free SIZE.")
    campaigns = pruning.find(options.directory)
    free = shutil.disk_usage(options.directory).free
    removals = pruning.choose(campaigns, rules, datetime.now(UTC), free)
    if options.yes:
        pruning.carry_out(removals)
    told = pruning.tell(removals, campaigns, done=options.yes)
    if shortage := pruning.missed(removals, campaigns, rules, free):
        raise MachineError(f"{told}\n{shortage}")
    return told
