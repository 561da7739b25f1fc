"""``./run.py setup``: brings what quicsat needs outside of Python: a Docker engine, tshark, scripts of the website."""

import subprocess
import sys

from quicsat.cli.exit_status import ExitStatus
from quicsat.cli.program import CommandOptions, Program
from quicsat.model import product_files
from quicsat.model.errors import MachineError

GROUP = "Maintain", 2
SUMMARY = "Install what quicsat needs outside of Python, and start a Docker engine."
DESCRIPTION = (
    "Install the Debian packages that quicsat needs and that are missing (docker.io, tshark, mmdebstrap, iproute2), "
    "start a Docker engine if none answers, and download uPlot for the packet plots of websites. As an ordinary user, "
    "list the missing packages, and start podman. This command does not change a machine that is ready."
)
EXAMPLES = ("setup   # as root",)


Options = CommandOptions


def run(_options: Options, _program: Program) -> int:
    """Prepare the machine."""
    prepare()
    return ExitStatus.SUCCESS


def prepare() -> None:
    """Run the set-up, which prints what it does and what it lacks; raises :class:`MachineError` if it fails."""
    command = ["bash", str(product_files.FILES / "scripts" / "setup"), "--for", sys.executable]
    try:
        status = subprocess.run(command, stdin=subprocess.DEVNULL, check=False).returncode
    except OSError as error:
        raise MachineError(f"The set-up needs bash: {error.strerror}.") from error
    if status:
        raise MachineError("This machine is not ready, see above.")
