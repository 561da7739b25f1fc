"""Shares of the time of transfers in virtual time, against what servers and the link say: right within a round trip."""

import re
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest

from quicsat.analysis.reanalysis import planned
from quicsat.analysis.time_shares import SHARES, run_time_shares
from quicsat.docker.archive import pack
from quicsat.docker.client import Daemon
from quicsat.docker.daemon_images import DaemonImages
from quicsat.model.implementation import Protocol
from quicsat.model.results import RunResult
from quicsat.model.time_shares import TimeShare
from quicsat.results.store import load
from quicsat.traces.columns import Frame
from quicsat.traces.flow_control import busiest_connection, connection_limit
from quicsat.traces.quic_series import QuicTracePair
from quicsat.traces.run_traces import RunTraces, check_traces, read_run
from tests.engine.pausing_endpoint import PAUSE
from tests.engine.test_command import call, measure

PAUSING = "quicsat/test-pausing:latest"
WINDOW = """\
name: window
abbreviation: WI
description: 3 MiB over a satellite link
link: {scenario: asymmetric-p2p, delay: 300 ms, forward rate: 20 Mbit/s, return rate: 2 Mbit/s, queue: 100}
file size: 3 MiB
repetitions: 1
timeout: 60 s
"""
HOLE = """\
name: hole
abbreviation: HO
description: 5 MiB over a link with an outage of 2 s
link: {scenario: blackhole, delay: 15 ms, rate: 20 Mbit/s, queue: 25, blackhole: {on: 1 s, off: 2 s}}
file size: 5 MiB
repetitions: 1
timeout: 60 s
"""
QUICK = ("--skip-compliance-check", "--clock", "virtual", "--seed", "7")


def traces_of(directory: Path, result: RunResult) -> RunTraces:
    place = directory / result.key.path
    link = planned(load(directory).result_set.manifest, result).test_case.link
    return read_run(place, Protocol.HQ, link, check_traces(place, Protocol.HQ))


def test_flow_control_is_what_the_server_says(virtual_images: Mapping[str, str], tmp_path: Path) -> None:
    """picoquic paces at the rate that the window allows. It sends DATA_BLOCKED when it has used its credit up."""
    (tmp_path / "case.yaml").write_text(WINDOW)
    directory = tmp_path / "r"
    pair = ("-s", "picoquic", "-c", "picoquic:window-512k", "-t", tmp_path / "case.yaml")
    [result] = measure(directory, *pair, *QUICK)
    traces = traces_of(directory, result)
    pair_traces, case = traces.trace_pair, planned(load(directory).result_set.manifest, result).endpoint_test_case
    found = run_time_shares(traces, traces.series(), case, result.evidence)
    assert isinstance(pair_traces, QuicTracePair)
    server, times = pair_traces.server, pair_traces.server_times
    connection = busiest_connection(server)
    assert connection is not None
    limit = connection_limit(server, times, connection).time
    stuck = (server.signals.kind == Frame.DATA_BLOCKED) & server.from_server[server.signals.packet]
    used_up = np.searchsorted(limit, times[server.signals.packet[stuck]], "right")
    waits = (TimeShare.CONNECTION_FLOW_CONTROL, TimeShare.PACING, TimeShare.CONGESTION_WINDOW)
    spent = np.isin(np.searchsorted(limit, found.time[:-1], "right"), used_up)
    spent &= np.isin(found.share, [SHARES.index(share) for share in waits])
    truth = float(np.diff(found.time)[spent].sum())
    assert truth > 2
    assert found.seconds[TimeShare.CONNECTION_FLOW_CONTROL] == pytest.approx(truth, abs=0.6)


def test_an_outage_and_the_silence_after_it(virtual_images: Mapping[str, str], tmp_path: Path) -> None:
    """The silence ends with the first packet of the server that arrives again."""
    (tmp_path / "case.yaml").write_text(HOLE)
    directory = tmp_path / "r"
    [result] = measure(directory, "-s", "quic-go", "-c", "picoquic", "-t", tmp_path / "case.yaml", *QUICK)
    traces = traces_of(directory, result)
    [hole] = result.evidence.simulator.blackholes
    arrived = traces.series().forward.arrived
    silence = float(np.nanmin(arrived[arrived > hole.end - traces.start])) - (hole.end - traces.start)
    values = result.measurement.values
    assert values[TimeShare.OUTAGE.metric] == pytest.approx(2, abs=0.03)
    assert silence > 0.2
    assert values[TimeShare.PTO.metric] == pytest.approx(silence, abs=0.03)


def test_an_application_that_pauses(daemon: Daemon, virtual_images: Mapping[str, str], tmp_path: Path) -> None:
    """The server's application has half of the file, and later the rest; ``explain`` states the same share."""
    dockerfile = (
        f"FROM {virtual_images['aioquic']}\nCOPY pausing.py /endpoint/\n"
        "RUN cd /endpoint && chmod 755 pausing.py && ln -sf pausing.py server\n"
    )
    program = Path(__file__).with_name("pausing_endpoint.py").read_bytes()
    context = pack({"Dockerfile": dockerfile.encode(), "pausing.py": program})
    DaemonImages(daemon).build(context, PAUSING, {}, lambda _line: None)
    (tmp_path / "case.yaml").write_text(WINDOW)
    directory = tmp_path / "r"
    pair = ("-s", "aioquic", "-c", "quic-go", "-t", tmp_path / "case.yaml", "--replace", f"aioquic={PAUSING}")
    [result] = measure(directory, *pair, *QUICK)
    values = result.measurement.values
    total = sum(values[share.metric] for share in TimeShare)
    assert values[TimeShare.APPLICATION.metric] == pytest.approx(PAUSE, abs=0.6)
    status, told, _ = call("explain", directory / result.key.path)
    stated = re.search(r"application (\d+) %", told)
    assert status == 0
    assert stated
    assert int(stated[1]) / 100 * total == pytest.approx(PAUSE, abs=0.6)
