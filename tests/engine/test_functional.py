"""Functional tests at the real engine: quic-go passes the quick ones with aioquic and itself as servers.

The other way round, they run in virtual time (``test_virtual_time``).
"""

from collections.abc import Mapping
from pathlib import Path

import pytest

from quicsat.model.outcomes import ErrorCode, Outcome
from quicsat.results.store import load
from tests.engine.test_command import UNCHECKED, call

SERVERS = "quic-go,aioquic"
QUICK = ("H", "R", "S", "Z", "L2")


@pytest.mark.timeout(600)
def test_the_quick_ones_pass_by_the_rfcs(image_ids: Mapping[str, str], tmp_path: Path) -> None:
    """Handshake, resumption, Retry, 0-RTT and a transfer with 2 % loss."""
    directory = tmp_path / "r"
    options = ("--images", "local", "--parallel", "auto", UNCHECKED)
    status, out, err = call("run", "-s", SERVERS, "-c", "quic-go", "-t", *QUICK, "-l", directory, *options)
    results = load(directory).result_set.results
    found = {(each.server, each.client, each.test_case): each for each in results}
    assert len(results) == 2 * len(QUICK)
    lagged = {key for key, result in found.items() if result.verdict.code is ErrorCode.SIMULATOR_LAG}
    wrong = {key: result.verdict.reason for key, result in found.items() if result.verdict.reason and key not in lagged}
    assert wrong == {}
    if lagged:
        pytest.skip(f"this machine was too busy to emulate the link of {len(lagged)} runs; all others passed")
    assert status == 0, err
    assert "10/10" in out


def test_what_is_not_there_is_told(image_ids: Mapping[str, str], tmp_path: Path) -> None:
    """aioquic does not mark its packets, and says so with 127; upstream's rules can be asked for."""
    directory = tmp_path / "r"
    pair = ("-s", "quic-go", "-c", "aioquic", UNCHECKED)
    status, out, err = call("run", *pair, "-t", "E", "3", "--strict-upstream", "-l", directory, "--images", "local")
    outcomes = {result.test_case: result.verdict.outcome for result in load(directory).result_set.results}
    assert outcomes == {"ecn": Outcome.UNSUPPORTED, "http3": Outcome.SUCCEEDED}
    assert status == 0, err
    assert "--strict-upstream" in out
