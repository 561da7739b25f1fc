"""``./run.py doctor``: checks whether this machine is ready for measurements, and suggests a fix for each problem."""

from itertools import chain

from quicsat.cli import console
from quicsat.cli import options as shared
from quicsat.cli.exit_status import ExitStatus
from quicsat.cli.program import Program, flag
from quicsat.config import hosts
from quicsat.model.product_files import as_installed
from quicsat.model.text import counted

GROUP = "Maintain", 3
SUMMARY = "Check whether this machine is ready, and suggest a fix for each problem."
DESCRIPTION = (
    "Check Python, tshark, the disk, the Docker daemon and the images on this machine, check the daemons in a hosts "
    "file, and suggest a fix for each problem. Checks that found nothing to do are only counted. The exit status is 3 "
    "if a problem prevents measurements."
)
EXAMPLES = ("doctor", "doctor --hosts hosts.yml   # check other machines, too")


class Options(shared.HostsOptions, group="output"):
    """The options of the command."""

    all: bool = flag("--all", help="Also list the checks that found nothing to do.")


def run(options: Options, program: Program) -> int:
    """Print a line for each check that found something to do, and how many did not."""
    from quicsat.cli.machine_check import State, examine, examine_hosts
    from quicsat.images import build_recipes

    worst = ExitStatus.SUCCESS
    known = hosts.known(options.hosts)
    here = examine(shared.daemon(), build_recipes.expected(), program.results)
    everything, fine = options.all or options.debug, 0
    for finding in chain(here, examine_hosts(known.values())):
        fine += finding.state is State.OK
        if finding.state is State.OK and not everything:
            continue
        console.show(f"{finding.state:4}  {finding.what}: {finding.text}")
        if finding.state is not State.OK:
            console.show(f"      -> {as_installed(finding.remedy)}")
            worst = ExitStatus.MACHINE if finding.state is State.FAIL else worst
    if not everything:
        console.show(f"{counted(fine, 'check')} found nothing to do; --all lists {'it' if fine == 1 else 'them'}.")
    return worst
