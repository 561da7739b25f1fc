"""``./run.py merge``: merges the shards of a campaign, measured by several machines, into one campaign."""

from pathlib import Path

from quicsat.cli import console
from quicsat.cli.exit_status import ExitStatus
from quicsat.cli.program import CommandOptions, Program, option

GROUP = "Maintain", 5
SUMMARY = "Merge the shards of a campaign into one."
DESCRIPTION = "Merge the shards of a campaign (`./run.py run --shard I/N`) into one campaign."
EXAMPLES = ("merge part-1 part-2 -o whole",)


class Options(CommandOptions, group="output"):
    """The options of the command."""

    directories: list[Path] = option(
        type=Path, nargs="+", metavar="DIR", help="One campaign per shard; example: part-1 part-2."
    )
    output: Path = option(
        "-o", "--output", type=Path, required=True, metavar="DIR",
        help="Directory of the new campaign (required; example: whole).",
    )  # fmt: skip


def run(options: Options, program: Program) -> int:
    """Merge, and print a summary."""
    from quicsat.results import merge

    console.show(merge.merge(options.directories, options.output))
    return ExitStatus.SUCCESS
