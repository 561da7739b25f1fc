"""What `./run.py worker` does: offers testbeds beside this machine's Docker daemon to campaigns of a cluster."""

from __future__ import annotations

import argparse
import socket
from collections.abc import Callable
from pathlib import Path

from interop.model import Scheduler
from interop.options import scheduler_address, testbeds


def add_options(parser: argparse.ArgumentParser) -> None:
    """Of the command."""
    parser.add_argument(
        "address", type=scheduler_address, metavar="ADDRESS", help="of the Dask scheduler, tcp://… or tls://…"
    )
    parser.add_argument(
        "--testbeds",
        type=testbeds,
        metavar="N|auto",
        help="runs at the same time; auto, the default: as many as the links allow and the CPUs have time for",
    )
    parser.add_argument(
        "--name", default=socket.gethostname(), help="by which the worker is known; default: this machine's"
    )
    parser.add_argument("--cluster-tls", type=Path, metavar="DIR", help="ca.pem, cert.pem and key.pem, for tls://")


def carry_out(given: argparse.Namespace, url: str, say: Callable[[str], None]) -> int:
    """Serve campaigns until a signal comes, and return its number; ``url``: of the Docker daemon.

    Raises :class:`MachineError` if there is no daemon or no scheduler.
    """
    from interop.analysis.analyse import analyse
    from interop.crews import AUTO_TESTBEDS, check_dask

    check_dask()
    from interop.execution.background import background
    from interop.execution.cluster import serve
    from interop.execution.daemon import Daemon
    from interop.execution.service import Desk

    Daemon(url, "worker")
    most = given.testbeds or AUTO_TESTBEDS
    with background(analyse) as judge:
        desk = Desk(url, judge, most, measured=given.testbeds is None, name=given.name)
        return serve(Scheduler(given.address, given.cluster_tls), desk, most, say)
