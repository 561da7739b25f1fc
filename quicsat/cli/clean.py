"""``./run.py clean``: removes containers, and their volumes, that killed campaigns left behind."""

from quicsat.cli import console
from quicsat.cli import options as shared
from quicsat.cli.exit_status import ExitStatus
from quicsat.cli.program import Program, flag
from quicsat.config import hosts
from quicsat.model.text import counted

GROUP = "Maintain", 4
SUMMARY = "Remove containers that a killed campaign left behind."
DESCRIPTION = (
    "Remove the containers that a killed campaign left behind. This command refuses to run while a campaign is using "
    "the Docker daemon. The next campaign of the same machine also removes these containers when it begins."
)
EXAMPLES = ("clean", "clean --hosts hosts.yml   # clean other machines, too")


class Options(shared.HostsOptions, group="machines"):
    """The options of the command."""

    all_machines: bool = flag(
        "--all-machines",
        help="Also remove containers of campaigns that other machines started, even if they are still running.",
    )


def run(options: Options, program: Program) -> int:
    """Remove the containers, and print how many there were."""
    from quicsat.docker import ssh_tunnel
    from quicsat.docker.containers import remove_containers
    from quicsat.execution import lock

    removed = 0
    for host in (shared.daemon(), *hosts.known(options.hosts).values()):
        with ssh_tunnel.connected(host, "clean") as daemon, lock.exclusive(daemon.id, "clean"):
            removed += remove_containers(daemon, passes=2, all_machines=options.all_machines)
    words = f"Removed {counted(removed, 'container')}."
    console.show(words if removed else "No containers were left behind.")
    return ExitStatus.SUCCESS
