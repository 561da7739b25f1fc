"""Compares shares and Jain's index of campaigns with those that tshark's reading of the same traces gives.

    python -m bench.fairness results/latest

tshark decrypts the client's trace. For each address of a server, this program counts the bytes of streams (TCP: of
segments) that no earlier packet had. From them, it computes when the flows compete, their shares and Jain's index. It
shares no code with the analysis of quicsat.
"""
# ruff: noqa: T201 - a script

import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from prettytable import PrettyTable

from quicsat.results.store import load

BAR = 0.005
"""By which a share and Jain's index may differ."""
FIELDS = ("frame.time_epoch", "ip.src", "quic.stream.stream_id", "quic.stream.offset", "quic.stream_data", "tcp.seq",
          "tcp.len")  # fmt: skip
TRACE = Path("sim/trace_node_left.pcap")

Arrivals = dict[str, list[tuple[float, int]]]
"""Server's address -> time and new bytes of each packet that has any."""


@dataclass(frozen=True)
class Comparison:
    """A run, with shares of its flows and Jain's index: ours and tshark's."""

    run: str
    ours: tuple[float, ...]
    theirs: tuple[float, ...]
    jain_ours: float
    jain_theirs: float

    @property
    def difference(self) -> float:
        """The largest one."""
        pairs = zip((*self.ours, self.jain_ours), (*self.theirs, self.jain_theirs), strict=True)
        return max(abs(one - other) for one, other in pairs)


def arrivals(lines: Iterable[str]) -> Arrivals:
    """What rows of ``FIELDS`` tell, separated by tabs, several values of a field by commas."""
    seen: dict[tuple[str, str], set[int]] = defaultdict(set)
    found: Arrivals = defaultdict(list)
    for line in lines:
        time, source, streams, offsets, data, number, length = line.rstrip("\n").split("\t")
        pieces: list[tuple[str, int, int]] = []
        if number and int(length):
            pieces.append(("tcp", int(number), int(length)))
        elif streams:
            names, sizes = streams.split(","), [len(each.replace(":", "")) // 2 for each in data.split(",")]
            places = [int(each) for each in offsets.split(",") if each]
            places = [0] * (len(names) - len(places)) + places  # a frame at the beginning of its stream has no offset
            pieces += zip(names, places, sizes, strict=False)
        new = 0
        for name, place, size in pieces:
            known = seen[source, name]
            bytes_here = set(range(place, place + size))
            new += len(bytes_here - known)
            known |= bytes_here
        if new:
            found[source].append((float(time), new))
    return found


def shares(found: Arrivals) -> tuple[float, ...]:
    """Of the flows in the order of their addresses, while all compete."""
    flows = [found[address] for address in sorted(found, key=lambda each: int(each.rpartition(".")[2]))]
    begin, end = max(flow[0][0] for flow in flows), min(flow[-1][0] for flow in flows)
    sums = [sum(new for time, new in flow if begin < time <= end) for flow in flows]
    return tuple(each / sum(sums) for each in sums)


def jain(values: Sequence[float]) -> float:
    """Jain's fairness index."""
    return sum(values) ** 2 / (len(values) * sum(each**2 for each in values))


def tshark_rows(run: Path) -> Iterator[str]:
    """Rows of ``FIELDS`` for the packets from servers, decrypted with the keys of all flows."""
    with tempfile.NamedTemporaryFile(mode="w", suffix=".log") as keys:
        for path in sorted([*run.glob("*/keys.log"), *run.glob("flow-*/*/keys.log")]):
            keys.write(path.read_text(encoding="utf-8") + "\n")
        keys.flush()
        fields = (word for each in FIELDS for word in ("-e", each))
        command = [
            "tshark", "-n", "-r", str(run / TRACE), "-o", f"tls.keylog_file:{keys.name}", "-d", "udp.port==443,quic",
            "--disable-protocol", "http3", "-o", "tcp.relative_sequence_numbers:TRUE",
            "-Y", "ip.src == 193.167.100.0/24 && !icmp",  # an ICMP message quotes addresses of another packet
            "-T", "fields", "-E", "occurrence=a", "-E", "aggregator=,", *fields,
        ]  # fmt: skip
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            yield from process.stdout


def compare(directory: Path) -> Iterator[Comparison]:
    """Each run of a campaign with several flows that compete."""
    for result in load(directory).result_set.results:
        measured = result.measurement
        if measured is None or "jain_index" not in measured.values:
            continue
        ours = tuple(flow.share or 0.0 for flow in measured.flows)
        theirs = shares(arrivals(tshark_rows(directory / result.key.path)))
        yield Comparison(str(result.key), ours, theirs, measured.values["jain_index"], jain(theirs))


def main() -> int:
    """Print a row per run; the exit status is 1 if one differs by more than the bar, or if there is none."""
    table = PrettyTable(["run", "shares", "shares (tshark)", "Jain's index", "Jain's index (tshark)", "difference"])
    found = [each for directory in sys.argv[1:] for each in compare(Path(directory))]
    for each in found:
        ours, theirs = (" ".join(f"{share:.4f}" for share in many) for many in (each.ours, each.theirs))
        table.add_row([each.run, ours, theirs, f"{each.jain_ours:.4f}", f"{each.jain_theirs:.4f}",
                       f"{each.difference:.5f}"])  # fmt: skip
    print(table)
    largest = max((each.difference for each in found), default=float("inf"))
    print(f"largest difference of {len(found)} runs: {largest:.5f} (bar: {BAR})")
    return int(largest > BAR)


if __name__ == "__main__":
    sys.exit(main())
