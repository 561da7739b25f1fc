"""Measures how long the analysis of the traces of a 10 MiB run takes, here and in the QUIC Interop Runner.

    make bench-trace                  # a transfer that is made for it in memory
    python -m bench.trace results/latest/*_picoquic/terrestrial/1     # ours alone, of each run

Ours: both traces taken apart and matched, the server's qlog read, all series, facts and shares of the time, the series
written. Theirs: the three questions that a measurement asks (how many handshakes, which versions, first and last 1-RTT
packet), each with a pyshark FileCapture of its own, as in trace.py of the QUIC Interop Runner; no series, no loss, one
side. Seconds are those of processors, children included.
"""

# ruff: noqa: T201 - a script

import json
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median

import pyshark
from aioquic.quic.logger import QuicLogger

from quicsat.analysis.failure_context import last_sent
from quicsat.analysis.series_metrics import series_metrics
from quicsat.analysis.time_shares import link_conditions, time_shares
from quicsat.model.emulated_link import Direction, EmulatedLink
from quicsat.model.implementation import Protocol
from quicsat.model.units import MBPS, MIB, MS
from quicsat.traces.key_log import key_lines
from quicsat.traces.run_traces import CLIENT_TRACE, KEY_LOGS, QLOGS, SERVER_TRACE, check_traces, read_run
from quicsat.traces.series import save

LINK = EmulatedLink.symmetric("simple-p2p", Direction(15 * MS, 20 * MBPS, 25))
FROM_SERVER = "(quic && !icmp) && (ip.src==193.167.100.100 || ipv6.src==fd00:cafe:cafe:100::100)"
LIMIT, FACTOR = 0.6, 10
"""Seconds that ours may take in the median of ``TIMES``, and how many times as long theirs must."""

TIMES = 9


def cpu_seconds(work: Callable[[], object]) -> float:
    """What a piece of work costs all processors together."""
    before = sum(os.times()[:4])
    work()
    return sum(os.times()[:4]) - before


def ours(directory: Path) -> int:
    """All facts and series of a run; how many facts there are."""
    found = check_traces(directory, Protocol.HQ)
    traces = read_run(directory, Protocol.HQ, LINK, found)
    series = traces.series()
    save(series, directory)
    shares = time_shares(traces.trace_pair, series, link_conditions(LINK, None, 1, traces.start, last_sent(series)))
    return len(series_metrics(series, LINK.forward.rate)) + len(shares.seconds if shares else ())


def stored(places: Sequence[Path]) -> int:
    """Print the time of each stored run, and whether all take little enough."""
    times = list[float]()
    for place in places:
        with tempfile.TemporaryDirectory(prefix="bench-trace-") as name:
            shutil.copytree(place, name, dirs_exist_ok=True)
            times.append(median(cpu_seconds(lambda: ours(Path(name))) for _ in range(TIMES)))
        print(f"{'/'.join(place.parts[-3:])}: {times[-1]:.2f} s of one core, median of {TIMES}", flush=True)
    print(f"median {median(times):.2f} s, worst {max(times):.2f} s of {len(times)}; at most {LIMIT} s")
    return 0 if max(times) < LIMIT else 1


def theirs(directory: Path) -> int:
    """The questions of one measurement; how many packets answered the last."""
    _ask(directory / SERVER_TRACE, directory, f"{FROM_SERVER} && quic.long.packet_type == 0")
    _ask(directory / SERVER_TRACE, directory, f"{FROM_SERVER} && quic.long.packet_type")
    return _ask(directory / CLIENT_TRACE, directory, f"{FROM_SERVER} && quic.header_form==0")


def _ask(trace: Path, directory: Path, question: str) -> int:
    keys = directory / "keys.log"
    keys.write_text("".join(f"{line}\n" for line in key_lines(*(directory / log for log in KEY_LOGS))))
    capture = pyshark.FileCapture(
        str(trace),
        display_filter=question,
        override_prefs={"tls.keylog_file": str(keys)},
        disable_protocol="http3",
        decode_as={"udp.port==443": "quic"},
    )
    packets = [packet.sniff_time for packet in capture]
    capture.close()
    return len(packets)


def simulated(directory: Path) -> None:
    """A 10 MiB run of aioquic's client and server, in memory, with the server's qlog."""
    from tests.simulated import Link, transfer

    logger = QuicLogger()
    transfer([10 * MIB], Link(delay=15 * MS, queue=26), quic_logger=logger).write(directory)
    told = logger.to_dict()
    told["traces"] = [trace for trace in told["traces"] if trace["vantage_point"]["type"] == "server"]
    (directory / QLOGS).mkdir(parents=True)
    (directory / QLOGS / "server.qlog").write_text(json.dumps(told))


def main() -> int:
    """Print both, and whether the bar is reached."""
    if len(sys.argv) > 1:
        return stored([*map(Path, sys.argv[1:])])
    with tempfile.TemporaryDirectory(prefix="bench-trace-") as name:
        directory = Path(name)
        simulated(directory)
        sizes = sum((directory / trace).stat().st_size for trace in (CLIENT_TRACE, SERVER_TRACE)) / MIB
        usual = median(cpu_seconds(lambda: ours(directory)) for _ in range(TIMES))
        found = f"all series and {ours(directory)} facts"
        print(f"ours, traces of {sizes:.0f} MiB, {found}: {usual:.2f} s of one core, median of {TIMES}")
        slow = cpu_seconds(lambda: theirs(directory))
        print(f"pyshark, 3 queries with one pass each: {slow:.2f} s, {slow / usual:.0f} times as long")
        reached = usual < LIMIT and slow > FACTOR * usual
        print(f"below {LIMIT} s and {FACTOR} times as fast: {'yes' if reached else 'NO'}")
        return 0 if reached else 1


if __name__ == "__main__":
    sys.exit(main())
