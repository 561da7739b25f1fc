"""``./run.py worker``: offers testbeds beside this machine's Docker daemon to the campaigns of a Dask cluster."""

import socket
from pathlib import Path

from quicsat.cli import console
from quicsat.cli import options as shared
from quicsat.cli.exit_status import SIGNAL
from quicsat.cli.program import CommandOptions, Program, option
from quicsat.model.real_link import Scheduler

GROUP = "Maintain", 7
SUMMARY = "Join a Dask cluster and run its campaigns on this Docker daemon."
DESCRIPTION = (
    "Connect to a Dask scheduler, and run campaigns that other machines start with --cluster. The worker uses the "
    "Docker daemon that the docker command uses. Press Ctrl-C to stop the worker. Before you use this command, run "
    "`scripts/setup --cluster` in a checkout, or install `quicsat[cluster]`."
)
EXAMPLES = ("worker tcp://scheduler:8786 --parallel 2",)


class Options(CommandOptions, group="worker"):
    """The options of the command."""

    address: str = option(
        type=shared.scheduler_address, metavar="ADDRESS",
        help="Address of the Dask scheduler, with tcp:// or tls://; example: tcp://scheduler:8786.",
    )  # fmt: skip
    parallel: int | None = option(
        "--parallel", type=shared.parallel, metavar="N|auto",
        help=f"Number of parallel runs, 1 to {shared.MOST_TESTBEDS}, or auto for as many as links and CPUs allow "
        "(default: auto; example: 2).",
    )  # fmt: skip
    name: str | None = option(
        "--name", help="Name of the worker in messages and results (default: the host name; example: lab-2)."
    )
    cluster_tls: Path | None = shared.CLUSTER_TLS


def run(options: Options, program: Program) -> int:
    """Serve campaigns until a signal; raises MachineError if there is no Docker daemon, no Dask or no scheduler."""
    from quicsat.analysis.analyse import analyse_once
    from quicsat.execution.admission import AUTO_TESTBEDS
    from quicsat.execution.campaign_setup import check_dask

    check_dask()
    from quicsat.docker.ssh_tunnel import connected
    from quicsat.execution.analysis_pool import analysis_pool
    from quicsat.execution.cluster import serve
    from quicsat.execution.worker_service import WorkerService

    host, most = shared.daemon(), options.parallel or AUTO_TESTBEDS
    with connected(host, "worker"):
        pass  # raises if no daemon answers
    with analysis_pool(analyse_once, low_priority=most > 1) as pool:
        name = options.name or socket.gethostname()
        service = WorkerService(host, pool, most, measured=options.parallel is None, name=name)
        return SIGNAL + serve(Scheduler(options.address, options.cluster_tls), service, console.message)
