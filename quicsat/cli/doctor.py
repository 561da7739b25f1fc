"""``./run.py doctor``: checks whether this machine is ready for measurements, and suggests a fix for each problem."""

from __future__ import annotations

from itertools import chain

from quicsat.cli import console
from quicsat.cli import options as shared
from quicsat.cli.exit_status import ExitStatus
from quicsat.cli.program import Program
from quicsat.config import hosts
from quicsat.model.product_files import as_installed

GROUP = "Maintain", 3
SUMMARY = "Check whether this machine is ready, and suggest a fix for each problem."
DESCRIPTION = (
    "Check Python, tshark, the disk, the Docker daemon and the images on this machine, check the daemons in a hosts "
    "file, and suggest a fix for each problem. The exit status is 3 if a problem prevents measurements."
)
EXAMPLES = ("doctor", "doctor --hosts hosts.yml   # check other machines, too")


Options = shared.HostsOptions


def run(options: Options, program: Program) -> int:
    """Print a line per check."""
    from quicsat.cli.machine_check import State, examine, examine_hosts
    from quicsat.images import build_recipes

    worst = ExitStatus.SUCCESS
    known = hosts.known(options.hosts)
    here = examine(shared.daemon(), build_recipes.expected(), program.results)
    for finding in chain(here, examine_hosts(known.values())):
        console.show(f"{finding.state:4}  {finding.what:16}  {finding.text}")
        if finding.state is not State.OK:
            console.show(f"{'':24}-> {as_installed(finding.remedy)}")
            worst = ExitStatus.MACHINE if finding.state is State.FAIL else worst
    return worst
