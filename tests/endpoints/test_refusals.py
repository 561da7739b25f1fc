"""Endpoints say so when something is wrong: a certificate of a stranger, a file that is not there."""

import random
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from quicsat.cli import image_check
from quicsat.config import loader
from quicsat.docker.client import Daemon
from quicsat.docker.daemon_images import DaemonImages
from quicsat.execution import transfer as transfers
from quicsat.execution.run_config import RunConfig
from quicsat.execution.run_inputs import Inputs, make_inputs
from quicsat.execution.transfer import Transfer
from quicsat.images.status import ImageState, stock_of, stock_of_own
from quicsat.links.backend import Testbed
from quicsat.links.certificates import certificates
from quicsat.links.ns3_testbed import Ns3Backend
from quicsat.links.session import InputOrigin, RunControl
from quicsat.model.evidence import Evidence
from quicsat.model.implementation import Implementation, Role
from quicsat.model.test_case import TestCase
from quicsat.plan.make_plan import make_plan
from tests.endpoints.conftest import KNOWN, LOCK_PATIENCE, OURS, PEER, need
from tests.engine.conftest import ROOT
from tests.engine_lock import URL, held

RESETTING = KNOWN["aioquic"]
"""A server that resets the stream on which a file is asked for that is not there."""
CLIENTS = [name for name, role in OURS if role is Role.CLIENT]
SERVERS = [name for name, role in OURS if role is Role.SERVER]
SERVE_AN_EMPTY_FILE: set[str] = set()
"""Servers whose stacks have no way to say over HTTP/0.9 that there is no such file."""
TIMEOUT = 60.0

Change = Callable[[Inputs], Inputs]
Try = Callable[[Implementation, Implementation, Change], Evidence]


def another_authority(inputs: Inputs) -> Inputs:
    """The client trusts somebody who has not signed the server's certificate."""
    return replace(
        inputs,
        certs={**inputs.certs, "certs/ca.pem": certificates(1, random.SystemRandom(), datetime.now(UTC))["ca.pem"]},
    )


def no_such_file(inputs: Inputs) -> Inputs:
    """What is asked for is not there; something else is."""
    return replace(inputs, www={f"{path}-not": content for path, content in inputs.www.items()})


@pytest.fixture(scope="module")
def around() -> Iterator[tuple[Testbed, RunConfig]]:
    """The engine for us alone, and a testbed."""
    need(PEER)
    daemon = Daemon(URL, "test-refusals")
    stocked = [each for one in KNOWN.values() if one.build for each in stock_of(DaemonImages(daemon), ROOT, one)]
    simulator = stock_of_own(DaemonImages(daemon), "simulator")
    images = {
        each.name: each.image for each in (simulator, *stocked) if each.image and each.state is ImageState.CURRENT
    }
    with held(daemon, "tests/endpoints", LOCK_PATIENCE), Ns3Backend(daemon, images["simulator"].id).open() as testbed:
        yield testbed, RunConfig(images)


@pytest.fixture
def attempt(around: tuple[Testbed, RunConfig], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Try:
    """Carries out a run of 1 KiB whose inputs have been changed."""
    testbed, config = around
    small = image_check.check_cases(loader.load_known_test_cases(ROOT / "testcases")["terrestrial"])[0]

    def try_out(server: Implementation, client: Implementation, change: Change) -> Evidence:
        for each in (server, client):
            if each.name not in config.images:
                pytest.skip(f"NOT BUILT: `./run.py images build {each.name}`")

        @contextmanager
        def changed(case: TestCase, directory: Path, origin: InputOrigin | None) -> Iterator[Inputs]:
            with make_inputs(case, directory, origin) as inputs:
                yield change(inputs)

        monkeypatch.setattr(transfers, "make_inputs", changed)
        (run,) = make_plan([server], [client], [replace(small, timeout=TIMEOUT)], seed=1)
        evidence = Transfer(run, testbed, config, RunControl(threading.Event()), tmp_path).make()
        assert not evidence.fault, evidence.fault
        return evidence

    return try_out


def failed(evidence: Evidence) -> bool:
    """Whether the client has ended by itself and said that something is wrong."""
    client = evidence.client
    return client is not None and not client.killed and client.status not in (None, 0, 127)


@pytest.mark.parametrize("name", CLIENTS)
def test_a_client_refuses_a_certificate_of_another_authority(attempt: Try, name: str) -> None:
    evidence = attempt(PEER, KNOWN[name], another_authority)
    assert failed(evidence), evidence
    assert sum(file.size for file in evidence.downloaded) == 0


@pytest.mark.parametrize("name", CLIENTS)
def test_to_a_client_a_reset_stream_is_an_error(attempt: Try, name: str) -> None:
    evidence = attempt(RESETTING, KNOWN[name], no_such_file)
    assert failed(evidence), evidence


@pytest.mark.parametrize("name", SERVERS)
def test_a_server_has_no_file_that_is_not_there(attempt: Try, name: str) -> None:
    """It may close the connection, reset the stream, or answer with words of its own; the client does not wait."""
    evidence = attempt(KNOWN[name], PEER, no_such_file)
    assert evidence.timed_out is None, evidence
    text = sum(file.size for file in evidence.downloaded)
    assert failed(evidence) or text > 0 or name in SERVE_AN_EMPTY_FILE, evidence
