"""``./run.py images``: lists, builds, pulls and checks Docker images of implementations and of the simulator."""

from pathlib import Path

from quicsat.cli import console
from quicsat.cli import options as shared
from quicsat.cli.exit_status import SIGNAL, ExitStatus
from quicsat.cli.program import Program, flag, option
from quicsat.model.clock import Clock
from quicsat.model.errors import InputError

CHECK = "check"
OUTDATED = "outdated"
RELEASES = "releases"
ACTIONS = ("list", "sources", OUTDATED, RELEASES, "build", "pull", CHECK, "lock")
GROUP = "Maintain", 1
SUMMARY = "List, build, pull or check Docker images."
DESCRIPTION = (
    "`list` shows the images on this machine. `sources` shows the version, commit, patches and build type of each "
    "image. `outdated` compares the versions from which images are built with the newest ones in the package "
    "registries. `releases` lists the releases that you can select with NAME@VERSION. `build` builds images from "
    "endpoints/, and pulls the images that you name if they have no Dockerfile there. `pull` pulls images from a "
    "registry. `check` tests whether an image follows the endpoint contract, and runs transfers and functional tests "
    "with quic-go. `lock` writes the digests of the images on this machine into a file, so that `run --locked` uses "
    "the same images."
)
EXAMPLES = (
    "images list",
    "images outdated",
    "images releases quic-go",
    "images build simulator quic-go aioquic quic-go@v0.54.1",
    "images check picoquic:bbr",
    "images check me/my-quic:dev --clock virtual",
    "images lock",
)


class Options(shared.WaitOptions, group="output"):
    """The options of the command."""

    action: str = option(choices=ACTIONS, metavar="ACTION", help=f"One of {', '.join(ACTIONS)}; example: list.")
    names: list[str] = option(
        nargs="*", metavar="NAME",
        help="Implementations, or simulator, link-tools, virtual-time, link-gateways; for check, also an image that no "
        "implementation has (default: all but the last three; example: quic-go simulator).",
    )  # fmt: skip
    lock_file: Path = option(
        "--lock-file", type=Path, default=shared.LOCK_FILE, metavar="FILE",
        help=f"Lock file; if you name implementations, only their entries change (default: {shared.LOCK_FILE}; "
        "example: paper.lock).",
    )  # fmt: skip
    markdown: bool = flag("-m", "--markdown", help="Print the table of sources as Markdown.")
    json: Path | None = option(
        "-j", "--json", type=Path, metavar="FILE",
        help="For outdated: also write the versions to this file, as JSON (default: no file; example: releases.json).",
    )  # fmt: skip
    clock: Clock = shared.CLOCK


def run(options: Options, program: Program) -> int:
    """Carry the action out, and print its table."""
    from quicsat.cli.image_actions import ImageRequest, perform

    if options.json is not None and options.action != OUTDATED:
        raise InputError(f"--json belongs to the action {OUTDATED}.")
    request = ImageRequest(
        options.action,
        options.names,
        shared.daemon(),
        program.root,
        program.words,
        markdown=options.markdown,
        lock=options.lock_file,
    )
    if options.action == CHECK:
        from quicsat.cli.image_trial import check
        from quicsat.cli.progress import lines

        report = check(request, options.clock, options.wait, lines())
    elif options.action == OUTDATED:
        from quicsat.cli.image_releases import outdated

        report = outdated(options.names, program.root, options.json)
    elif options.action == RELEASES:
        from quicsat.cli.image_releases import releases

        report = releases(request)
    else:
        report = perform(request, console.message)
    console.show(report.text)
    if report.signal is not None:
        return SIGNAL + report.signal
    return ExitStatus.MACHINE if report.missing else ExitStatus.FAILURE if report.failed else ExitStatus.SUCCESS
