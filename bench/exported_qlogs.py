"""Check the qlogs that `export` writes: valid by the drafts, with as many packets and frames as the endpoints' own.

    .venv/bin/python -m bench.exported_qlogs results/latest/aioquic_aioquic/terrestrial/1 ...

A row per end of a run: events of how many structures were checked, how many of them are faulty, and packets and frames
by the traces and by the endpoint's qlog. Frames are those other than PADDING of packets that both sides could read; the
last column names the types that differ most. Of the link, it names the metric that differs most when quicsat reads the
qlogs back: times of shares relative to the whole time, others to the value from the traces.
"""
# ruff: noqa: T201 - a script

import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from quicsat.analysis.foreign_runs import examine
from quicsat.analysis.link_qlog import LinkRun
from quicsat.analysis.qlog_export import FILES, LINK, SUFFIX, write_qlogs
from quicsat.analysis.reanalysis import planned
from quicsat.analysis.series_metrics import series_metrics
from quicsat.analysis.time_shares import run_time_shares
from quicsat.cli.stored_run import stored_run
from quicsat.model.implementation import Role
from quicsat.model.results import RunResult
from quicsat.model.stored_files import files_below
from quicsat.model.test_case import TestCase
from quicsat.model.whole_file import take_file
from quicsat.results.qir_logs import QLOGS, find_runs
from quicsat.traces import qlog
from quicsat.traces.run_traces import RunTraces, check_traces, read_run
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


def _read_back(folder: Path, traces: RunTraces, case: TestCase, result: RunResult) -> str:
    """How many metrics both the qlogs in ``folder`` and the traces give, and the largest difference."""
    run, series = folder / "a_b/c/1", traces.series()
    for name in FILES:
        (run / QLOGS / name).mkdir(parents=True)
        take_file(folder / name, run / QLOGS / name / name)
    found = examine(find_runs(run).runs[0], None).values
    shares = run_time_shares(traces, series, case, result.evidence)
    spent = {} if shares is None else {share.metric: taken for share, taken in shares.seconds.items()}
    expected = {**series_metrics(series, case.link.forward.highest_rate), **spent}
    whole = {name: sum(spent.values()) if name in spent else abs(value) for name, value in expected.items()}
    differ = {
        name: abs(found[name] - value) / (whole[name] or 1.0) for name, value in expected.items() if name in found
    }
    worst = max(differ, key=differ.__getitem__)
    return f"read back: {len(differ)} of {len(expected)} metrics, {worst} by {differ[worst]:.1e}"


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
                told = "; ".join([*wrong[:MOST_TYPES], _read_back(folder, traces, case, result)])
                yield f"{row} | | | | {told} |"
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
