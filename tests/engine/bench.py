"""A testbed at a real engine for endpoints that do what a test tells them, as shell commands."""

import threading
import time
from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from quicsat.analysis.analyse import analyse
from quicsat.docker.client import Daemon
from quicsat.docker.containers import Container, ContainerSpec, create_container, list_containers
from quicsat.execution.retries import ATTEMPTS
from quicsat.execution.run_config import RunConfig
from quicsat.execution.transfer import Transfer
from quicsat.links.backend import Testbed
from quicsat.links.ns3_testbed import Ns3Testbed
from quicsat.links.session import RunControl
from quicsat.links.virtual_machine import VirtualTestbed
from quicsat.model.clock import Clock
from quicsat.model.emulated_link import Direction, EmulatedLink
from quicsat.model.evidence import Evidence
from quicsat.model.implementation import Implementation, Role
from quicsat.model.outcomes import ErrorCode, Outcome, Verdict
from quicsat.model.results import ImageFacts
from quicsat.model.run import Run
from quicsat.model.test_case import TestCase
from quicsat.model.units import MBPS, MIB

LINK = EmulatedLink.symmetric("simple-p2p", Direction(0.015, 20 * MBPS, 25))
CASE = TestCase("hostile", "HO", "", LINK, (100_000,), 1, 30.0)
SHORT = 4.0
"""Seconds for who does not end by itself."""
SPARE = 30.0
"""Seconds beyond the deadline of the transfer within which any run must be over."""


def small_endpoint(daemon: Daemon, spec: ContainerSpec) -> AbstractContextManager[Container]:
    """An endpoint's container with little memory and few processes, so that tests need not fill the machine."""
    return create_container(daemon, replace(spec, memory=192 * MIB, pids=200))


def make(
    run: Run, testbed: Testbed, images: Mapping[str, str], directory: Path, **options: Any
) -> tuple[Verdict, Evidence, float]:
    """Verdict, evidence and seconds of a run; ``options`` are those of ``RunConfig``."""
    config = RunConfig({name: ImageFacts(name, identity) for name, identity in images.items()}, **options)
    begin = time.monotonic()
    evidence = Transfer(run, testbed, config, RunControl(threading.Event()), directory).make()
    spent = time.monotonic() - begin
    return analyse(run, evidence, directory)[0], evidence, spent


@dataclass
class Bench:
    """A testbed for one run after another."""

    daemon: Daemon
    testbed: Ns3Testbed | VirtualTestbed
    images: Mapping[str, str]
    folder: Path
    runs: int = 0

    @property
    def directory(self) -> Path:
        """Of the latest run."""
        return self.folder / str(self.runs)

    def run(
        self, client: str = "", server: str = "", *, keep: bool = False, patience: float = 0.0
    ) -> tuple[Verdict, Evidence, float]:
        """Verdict, evidence and seconds of a run with ``client`` or ``server`` as shell commands, quic-go else.

        The client has ``patience`` seconds, if not as usual.
        Repeated, as in a campaign, if the machine was too busy to emulate a link.
        """
        for _ in range(ATTEMPTS):
            found = self._run_once(client, server, keep=keep, patience=patience)
            if found[0].code is not ErrorCode.SIMULATOR_LAG:
                return found
        pytest.skip("THE MACHINE IS TOO BUSY: the simulator fell behind in every attempt")

    def _run_once(self, client: str, server: str, *, keep: bool, patience: float) -> tuple[Verdict, Evidence, float]:
        case = replace(CASE, timeout=patience or CASE.timeout)
        run = Run(implementation(server), implementation(client), case, 1, 1)
        parameters = {"CLIENT_PARAMS": client, "SERVER_PARAMS": server}
        clock = Clock.VIRTUAL if isinstance(self.testbed, VirtualTestbed) else Clock.REAL
        options = {"keep_files": keep, "parameters": parameters, "clock": clock}
        self.runs += 1
        before = set(list_containers(self.daemon, self.daemon.campaign))
        verdict, evidence, spent = make(run, self.testbed, self.images, self.directory, **options)
        assert set(list_containers(self.daemon, self.daemon.campaign)) == before
        assert spent < run.test_case.timeout + SPARE
        assert bool(verdict.reason) == (verdict.outcome is not Outcome.SUCCEEDED)
        return verdict, evidence, spent

    @property
    def output(self) -> str:
        return (self.directory / "output.txt").read_text()


def implementation(commands: str) -> Implementation:
    return Implementation("hostile" if commands else "quic-go", "", "", frozenset(Role))
