"""``./run.py baseline``: saves a campaign as a small file, or checks a campaign against such a file."""

from dataclasses import replace
from pathlib import Path

from quicsat.cli import console, continuous_integration, stored_campaigns
from quicsat.cli.exit_status import ExitStatus
from quicsat.cli.output_files import check_earlier, check_outputs, is_plain
from quicsat.cli.program import Program, option
from quicsat.model.errors import InputError
from quicsat.model.text import command_line, escaped
from quicsat.model.units import byte_size

SAVE, CHECK = "save", "check"
GROUP = "Results", 5
SUMMARY = "Save the results of a campaign as a baseline, or check a campaign against one."
DESCRIPTION = (
    "`save` writes the results of a campaign, together with the clock, seed, images and versions, to a small file that "
    "you can keep with the sources of an implementation. `check` compares a campaign with this file. Its exit statuses "
    "are those of `compare`: 2 means that the campaign used, for example, a different clock, seed or partner image."
)
EXAMPLES = (
    "baseline save results/latest baseline.json",
    "baseline check results/latest baseline.json --comment comment.md",
)


class Options(continuous_integration.CiOptions):
    """The options of the command."""

    action: str = option(choices=(SAVE, CHECK), help="Save a campaign as a baseline, or check one; example: save.")
    directory: Path = option(type=Path, metavar="DIR", help="Directory of the campaign; example: results/latest.")
    file: Path = option(type=Path, metavar="FILE", help="File that contains the baseline; example: baseline.json.")
    placebo: Path | None = option(
        "--placebo", group="baseline", type=Path, metavar="DIR",
        help="Also save this placebo campaign of DIR (default: none; example: results/placebo).",
    )  # fmt: skip


def run(options: Options, program: Program) -> int:
    """Write the file, or compare the campaign with it."""
    from quicsat.results import baseline, store

    if options.file.is_dir() and options.directory.is_file():
        right = command_line("baseline", options.action, options.file, options.directory)
        raise InputError(f"{options.file}: is a directory. If it is that of the campaign, name it first: {right}")
    results = console.warn(store.load(options.directory))
    if options.action == SAVE:
        if options.expect or options.junit or options.comment or options.github:
            raise InputError("--expect, --junit, --comment and --github are for `baseline check`.")
        if results.manifest.placebo:
            raise InputError(f"{options.directory}: is a placebo. {stored_campaigns.PLACEBO}")
        check_outputs([("FILE", options.file)], [("DIR", options.directory)], campaign=options.directory)
        check_earlier("FILE", options.file, "baseline", baseline.is_baseline)
        results = stored_campaigns.with_placebo(results, options.placebo)
        baseline.save(results, options.directory, options.file)
        if is_plain(options.file):
            console.show(f"{escaped(str(options.file))}: {byte_size(options.file.stat().st_size)}")
        return ExitStatus.SUCCESS
    if options.placebo is not None:
        raise InputError("--placebo is for `baseline save`.")
    begun = results.manifest
    names = (*begun.servers, *begun.clients)
    request = continuous_integration.read_request(
        options, program.root, names, begun.test_cases, options.directory, options.file
    )
    request = replace(request, decides=True)
    status = continuous_integration.conclude(request, results, options.directory, program.draw)
    return ExitStatus.SUCCESS if status is None else status
