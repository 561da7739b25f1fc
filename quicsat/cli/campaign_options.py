"""The options of commands that begin a campaign or continue one."""

from pathlib import Path

from quicsat.cli import continuous_integration, other_runners
from quicsat.cli import options as shared
from quicsat.cli.program import CommandOptions, flag, option
from quicsat.config import quantities
from quicsat.model.text import printable

LONGEST_NOTE = 500
"""Characters."""


class ContinuedOptions(shared.MachineOptions, shared.OutputOptions, continuous_integration.CiOptions):
    """Those of a campaign that is begun or continued which it does not store."""


def _note(text: str) -> str:
    """A note of one line; raises ValueError."""
    if len(text) > LONGEST_NOTE:
        raise ValueError(f"has {len(text)} characters; at most {LONGEST_NOTE} are stored.")
    return printable(" ".join(text.split()))


class ImageOptions(CommandOptions, group="images and endpoints"):
    """Which images are used, and what is asked of the endpoints in them."""

    images: str = option(
        "--images", choices=("auto", "local", "pull", "build"), default="auto", metavar="SOURCE",
        help="Source of images: local (only this machine), pull (this machine, otherwise a registry), build (from "
        "endpoints/), or auto (this machine, otherwise a registry, otherwise build) (default: auto; example: local).",
    )  # fmt: skip
    locked: Path | None = option(
        "--locked", nargs="?", type=Path, const=shared.LOCK_FILE, metavar="FILE",
        help="Use exactly the images that this file names, and refuse others; `images lock` writes it (default: no "
        f"file, or {shared.LOCK_FILE} if you write --locked alone; example: paper.lock).",
    )  # fmt: skip
    skip_compliance_check: bool = flag(
        "--skip-compliance-check", help="Do not check whether images follow the endpoint contract."
    )
    no_qlog: bool = flag("--no-qlog", help="Do not request qlogs, which slow some endpoints down.")


class NewCampaignOptions(
    shared.SelectionOptions, ImageOptions, shared.ClockOptions, shared.ScheduleOptions, ContinuedOptions,
    other_runners.OtherRunnerOptions, group="output",
):  # fmt: skip
    """The options of `run`."""

    baseline: float = option(
        "--baseline", group="machines", default=0.0, metavar="DURATION",
        parse=quantities.within(quantities.duration_or_seconds, "0 s", "1 h"),
        help="First measure TCP throughput of real links with iperf3, in each direction for this duration, in seconds "
        "if it has no unit (default: 0, which means no measurement; example: 10s).",
    )  # fmt: skip
    log_dir: Path | None = option(
        "-l", "--log-dir", type=Path, metavar="DIR",
        help="Directory of the campaign, which must be empty or not exist (default: results/DATE; example: results/a).",
    )  # fmt: skip
    note: str = option(
        "--note", parse=_note, default="", metavar="TEXT",
        help="Note to store with the campaign, for example on conditions of a real link "
        "(default: none; example: \"rain, 8 °C\").",
    )  # fmt: skip
    yes: bool = flag(
        "--yes", group="schedule",
        help="Start without a question, even if the campaign takes more than 24 h or half of the free disk space.",
    )  # fmt: skip
    save_files: bool = flag(
        "-f", "--save-files", alone=other_runners.SAVE_FILES,
        help="Keep the transferred files of runs that do not succeed.",
    )  # fmt: skip
