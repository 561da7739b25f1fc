"""Check the qlogs that `export` writes: valid by the drafts, with as many packets and frames as the endpoints' own.

    .venv/bin/python -m bench.exported_qlogs results/latest/aioquic_aioquic/terrestrial/1 ...

A row per end of a run: events of how many structures were checked, how many of them are faulty, and packets and frames
by the traces and by the endpoint's qlog. Frames are those other than PADDING of packets that both sides could read; the
last column names the types that differ most.
"""
# ruff: noqa: T201 - a script

import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from quicsat.analysis.link_qlog import LinkRun
from quicsat.analysis.qlog_export import LINK, SUFFIX, write_qlogs
from quicsat.analysis.reanalysis import planned
from quicsat.cli.stored_run import stored_run
from quicsat.model.implementation import Role
from quicsat.model.stored_files import files_below
from quicsat.traces import qlog
from quicsat.traces.run_traces import check_traces, read_run
from tests.analysis.test_qlog_export import faults, records, validator

MEMBERS = ("packet_sent", "packet_received")
MOST_TYPES = 3
LONG = 24
"""Letters of a text from which on its value does not make another structure."""
HEADER = """\
| run | end | structures | faulty | packets | qlog | frames | qlog | types that differ |
|---|---|--:|--:|--:|--:|--:|--:|---|"""


def _structure(value: Any) -> Any:
    """The same for values of the same types: names and short words count, numbers do not."""
    if isinstance(value, dict):
        return tuple((name, _structure(each)) for name, each in value.items())
    if isinstance(value, list):
        return frozenset(map(_structure, value))
    short = isinstance(value, str) and len(value) < LONG and value.replace("_", "").replace(":", "").isalpha()
    return value if short else type(value).__name__


def _faulty(path: Path) -> tuple[int, list[str]]:
    """How many structures the events of a file have, and what is wrong with one event of each."""
    head, *events = records(path)
    different = {_structure(event): event for event in events}
    found = [fault for event in different.values() for fault in faults(event)]
    return len(different), [*found, *([] if validator().validate(head, root_type="QlogFileSeq").valid else ["header"])]


def _counts(events: Iterator[tuple[str, dict[str, Any]]]) -> tuple[int, Counter[str]]:
    """Packets, and frames by their types."""
    packets, frames = 0, Counter[str]()
    for name, data in events:
        if name in MEMBERS:
            packets += 1
            frames.update(str(frame.get("frame_type")).lower() for frame in data.get("frames") or ())
    del frames["padding"]
    return packets, frames


def _own(folder: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    for path in files_below(folder):
        for trace in qlog.read(path).traces:
            yield from ((event.name, dict(event.data)) for event in trace.events)


def checked(run: Path) -> Iterator[str]:
    """The rows of a run. Raises InputError, HarnessFault."""
    results, result, place, _ = stored_run(run, "bench.exported_qlogs RUN")
    case = planned(results.manifest, result).under(result.evidence.perturbation).test_case
    traces = read_run(place, result.protocol, case.link, check_traces(place, result.protocol))
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        write_qlogs(folder, "x", traces, LinkRun(case.link, result.evidence.simulator, 1, traces.start))
        for end in (*Role, LINK):
            path = folder / f"{end}{SUFFIX}"
            count, wrong = _faulty(path)
            row = f"| {result.key} | {end} | {count} | {len(wrong)} |"
            if end == LINK:
                yield f"{row} | | | | {'; '.join(wrong[:MOST_TYPES])} |"
                continue
            packets, frames = _counts((event["name"].removeprefix("quic:"), event["data"]) for event in records(path)
                                      if "data" in event)  # fmt: skip
            own_packets, own = _counts(_own(place / end / "qlog"))
            differ = sorted(frames.keys() | own.keys(), key=lambda kind: -abs(frames[kind] - own[kind]))
            named = [f"{kind} {frames[kind]}/{own[kind]}" for kind in differ[:MOST_TYPES] if frames[kind] != own[kind]]
            told = "; ".join([*wrong[:MOST_TYPES], *named])
            yield f"{row} {packets} | {own_packets} | {frames.total()} | {own.total()} | {told} |"


def main(runs: Sequence[str]) -> None:
    """Print the rows."""
    print(HEADER)
    for run in runs:
        for row in checked(Path(run)):
            print(row, flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
