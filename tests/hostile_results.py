"""Campaigns as no laboratory should send them: seeded, with all that a file, a number, a line and an event can be."""

import gzip
import json
import os
import random
import re
import shutil
import socket
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from quicsat.analysis.analyse import analyse
from quicsat.analysis.reanalysis import planned
from quicsat.model.evidence import HostFacts, ResourceUse
from quicsat.model.results import ImageFacts, ResultSet
from quicsat.model.run import File
from quicsat.results.store import Journal, attempt_directory, write_result_json
from tests.analysis.test_analyse import EVIDENCE
from tests.campaign_builder import PAGE, Shape
from tests.campaign_builder import campaign as synthetic
from tests.results_builder import SAT, result_set, run_result

DATA = Path(__file__).parent / "data"
OLD = DATA / "campaign-before-packages"
RUN = Path("quic-go_aioquic/sat/1")
"""Of :func:`campaign`, the run that has a file of every kind."""
PEER = ("quiche", "ngtcp2")
"""Server and client of :func:`good`."""
QLOG = RUN / "server/qlog/a.sqlog"
SECRET = b"SECRET-OF-ANOTHER-PLACE"
"""In files that no campaign may show."""


# ---- campaigns ------------------------------------------------------------------------------


def good(place: Path) -> None:
    """A small campaign that nothing is wrong with."""
    _store(place, _named(synthetic(Shape(PEER[:1], PEER[1:], (SAT, PAGE), repetitions=2, failing=0)), "good"))


def campaign(place: Path) -> None:
    """A campaign with everything that commands read or write below it."""
    case = replace(SAT, file_sizes=(30_000,), repetitions=3)
    results = result_set(
        [run_result(server="quic-go", client="aioquic", repetition=2, attempt=1, outcome=None, goodput=None)],
        servers=("quic-go",), clients=("aioquic",), test_cases=(case, replace(PAGE, repetitions=2)),
        images={"quic-go": ImageFacts("quic-go:1", "sha256:" + 64 * "0")},
    )  # fmt: skip
    results = replace(results, manifest=replace(results.manifest, shard="1/1"))
    files = (File("f", 30_000, "x"),)
    evidence = replace(
        EVIDENCE, started="2026-11-21T06:01:00Z", offered=files, downloaded=files, cpu_peak=1.5,
        host=HostFacts("6.1", "x86_64", 2, 2**33, "20.10", 0.5, 0.1, 0.4, 0.0),
        use={"client": ResourceUse(1.0, 0.5, 10**7, 1000, 100, 200, 300)}, images={"client": "sha256:" + 64 * "1"},
    )  # fmt: skip
    for attempt in (1, 2):
        folder = place / RUN if attempt == 2 else attempt_directory(place / RUN, attempt)
        shutil.copytree(DATA / "lossy", folder)
        if attempt == 1:
            continue
        for role in ("client", "server"):
            (folder / role / "log.txt").write_text("a line\n")
        for path in (folder / "server/qlog/a.sqlog", folder / "client/qlog/b.qlog"):
            path.parent.mkdir()
            path.write_text(_qlog())
        (folder / "output.txt").write_text("client|0.1|a line\n")
        shutil.copy(OLD / "picoquic_quic-go/blackhole/1/sim/link.json", folder / "sim/link.json")
    run = replace(run_result(server="quic-go", client="aioquic"), evidence=evidence)
    found = [replace(run, attempt=1)]
    verdict, measurement = analyse(planned(results.manifest, run), evidence, place / RUN)
    found.append(replace(run, attempt=2, verdict=verdict, measurement=measurement))
    shutil.copytree(DATA / "chromium-page", place / "quic-go_aioquic" / PAGE.name / "1")
    page = synthetic(Shape(("quic-go",), ("aioquic",), (PAGE,), repetitions=2, failing=0)).results
    _store(place, _named(replace(results, results=(*found, *results.results, *page)), "hostile"))
    (place / "plots").mkdir()
    (place / "plots/.drawn.json").write_text('{"cdf.svg": ["0", 1, 2]}')
    (place / "plots/cdf.svg").write_text("<svg xmlns='http://www.w3.org/2000/svg'/>")


def _named(results: ResultSet, name: str) -> ResultSet:
    return replace(results, manifest=replace(results.manifest, id=name, planned_runs=len(results.results)))


def _store(place: Path, results: ResultSet) -> None:
    place.mkdir(parents=True, exist_ok=True)
    with Journal.create(place, results.manifest) as journal:
        for result in results.results:
            journal.append_result(result)
        journal.finish()
        write_result_json(place, journal.record().result_set)


def _qlog() -> str:
    window = {"congestion_window": 12000, "ssthresh": 20000, "bytes_in_flight": 10, "smoothed_rtt": 30.5}
    events: list[dict[str, Any]] = [
        {"time": 0, "name": "transport:packet_sent", "data": {"header": {"packet_number": 0}}}
    ]
    events += [{"time": 30 * n, "name": "recovery:metrics_updated", "data": window} for n in range(1, 6)]
    events.append({"time": 200, "name": "recovery:packet_lost", "data": {"header": {"packet_number": 3}}})
    events.append({"time": 210, "name": "recovery:congestion_state_updated", "data": {"new": "recovery"}})
    head = {"qlog_version": "0.3", "qlog_format": "JSON-SEQ", "trace": {"common_fields": {"reference_time": 0}}}
    return "".join(f"\x1e{json.dumps(each)}\n" for each in (head, *events))


# ---- files that are something else ----------------------------------------------------------

Change = Callable[[Path, Path], None]
"""Replaces a path in a campaign; the second path is its like in a directory outside."""


def _removed(path: Path) -> None:
    shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink(missing_ok=True)


def _file(content: bytes) -> Change:
    def change(path: Path, _: Path) -> None:
        _removed(path)
        path.write_bytes(content)

    return change


def _link(target: Callable[[Path, Path], Path]) -> Change:
    def change(path: Path, outside: Path) -> None:
        _removed(path)
        path.symlink_to(target(path, outside))

    return change


def _hard_link(path: Path, outside: Path) -> None:
    if outside.is_file():
        _removed(path)
        os.link(outside, path)
    else:  # which no directory can have
        _link(lambda path, _: path)(path, outside)


def _socket(path: Path, _: Path) -> None:
    _removed(path)
    here = os.open(path.parent, os.O_RDONLY)
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(f"/proc/self/fd/{here}/{path.name}")  # the name of a socket is short
    os.close(here)


def _fifo(path: Path, _: Path) -> None:
    _removed(path)
    os.mkfifo(path)


def _device(path: Path, _: Path) -> None:
    _removed(path)
    try:
        os.mknod(path, 0o020666, os.makedev(1, 5))
    except PermissionError:  # not root
        path.symlink_to("/dev/zero")


def _other_kind(path: Path, _: Path) -> None:
    was_file = path.is_file()
    _removed(path)
    path.mkdir() if was_file else path.write_text("a file")


def _sparse(path: Path, _: Path) -> None:
    if path.is_dir():
        path = path / "log.txt"
    with path.open("ab") as file:
        file.truncate(3 * 2**30)


def _padded(path: Path, _: Path) -> None:
    _removed(path)
    path.write_bytes(gzip.compress(_qlog().encode()))
    os.truncate(path, 100 * 2**20)


def _half(path: Path, _: Path) -> None:
    if path.is_file():
        os.truncate(path, path.stat().st_size // 2)
    else:
        _removed(path)


CHANGES: dict[str, Change] = {
    "link outside": _link(lambda _, outside: outside),
    "relative link outside": _link(lambda path, outside: Path(os.path.relpath(outside, path.parent))),
    "link to nothing outside": _link(lambda _, outside: outside.with_name("new")),
    "link to itself": _link(lambda path, _: path),
    "link to a device": _link(lambda _, __: Path("/dev/zero")),
    "hard link": _hard_link,
    "FIFO": _fifo,
    "device": _device,
    "socket": _socket,
    "other kind": _other_kind,
    "3 GiB of nothing": _sparse,
    "gzip with padding": _padded,
    "gzip of empty members": _file(gzip.compress(b"") * 300_000),
    "half": _half,
    "empty": _file(b""),
    "deep JSON": _file(b'{"schema_version": ' + b"[" * 100_000),
    "text": _file(b"\xff\x00\x1b[2J<script>alert(1)</script>\n" * 100),
}
WRITTEN = ("site.json", ".series.parquet.new", "result.json.new", "cdf.pdf")
"""Names in a run, in a campaign and in its figures that this or an earlier version writes to."""

PACKED = ("client/more.log.gz", "server/qlog/more.sqlog.gz")
"""Names in a run of files that are unpacked."""


def places(base: Path) -> list[Path]:
    """All that a campaign has, and names that commands write to, relative to it."""
    found = [path.relative_to(base) for path in sorted(base.rglob("*"))]
    written = (folder / name for folder in (Path(), RUN, Path("plots")) for name in WRITTEN)
    return [*found, *written, *(RUN / name for name in PACKED)]


# ---- numbers --------------------------------------------------------------------------------

INTEGERS = (-1, 0, -5, 2**31, 2**53 + 1, 2**63 - 1, 2**63, -(2**63), 2**64, 10**30, 10**400)
NUMBERS = (1e308, -1e308, 5e-324, -5e-324, 1e30, -1.0, 0.0, -0.0, 1e15, float("nan"), float("inf"), -float("inf"))
MOMENTS = (
    "9999-12-31T23:59:59Z", "0001-01-01T00:00:00Z", "9999-12-31T23:59:59-23:59", "0001-01-01T00:00:00+23:59",
    "2026-11-21T06:00:00", "2026-02-30T06:00:00Z", "1969-12-31T23:59:59Z", "20261121T060000Z", "now", "",
)  # fmt: skip
TEXTS = (
    "", "..", "/etc/passwd", "a" * 100_000, "\x1b[2J", "\u202e", "<script>", "\x00", "\ud800", "$\\input{x}$", "a\nb",
    "=1+1", "%s%n", "-1", "NaN",
)  # fmt: skip
OTHERS: tuple[Any, ...] = (None, True, [], {}, [[]], {"": {}}, "text", 1, 1.5, -1)


def _like(value: Any, dice: random.Random) -> Any:
    """Another value, mostly of the same kind."""
    if dice.random() < 0.1:
        return dice.choice(OTHERS)
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return dice.choice((*INTEGERS, *NUMBERS[:4])) if dice.random() < 0.9 else value + dice.choice((-1, 1))
    if isinstance(value, float):
        return dice.choice(NUMBERS)
    if isinstance(value, str):
        is_moment = re.match(r"\d{4}-\d\d-\d\dT", value)
        return dice.choice(MOMENTS if is_moment and dice.random() < 0.9 else TEXTS)
    if isinstance(value, list):
        return dice.choice([[], value * 2, value[:1] * 1000, value[::-1]])
    return {} if value is None or dice.random() < 0.3 else {**value, dice.choice(TEXTS): 1}


def _places(value: Any, above: tuple[int | str, ...] = ()) -> Iterator[tuple[int | str, ...]]:
    yield above
    for key, part in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        yield from _places(part, (*above, key))


def _mutated(value: Any, dice: random.Random) -> Any:
    """The value with one to three others in it."""
    for _ in range(dice.choice((1, 1, 1, 2, 3))):
        [*above, last] = dice.choice([place for place in _places(value) if place] or [("",)])
        holder = value
        for step in above:
            holder = holder[step]
        with suppress(KeyError):
            holder[last] = _like(holder[last], dice)
    return value


# ---- journals -------------------------------------------------------------------------------


def sealed(line: dict[str, Any]) -> bytes:
    """A line with the checksum that it needs."""
    body = json.dumps(line, ensure_ascii=False).encode("utf-8", "surrogatepass")[:-1]
    return body + b', "sum": "' + sha256(body).hexdigest()[:16].encode() + b'"}'


@cache
def _lines(journal: Path) -> list[bytes]:
    return journal.read_bytes().splitlines()


def mutate_journal(place: Path, dice: random.Random) -> None:
    """Change the journal of a campaign, mostly so that its checksums are right, or its result.json in its place."""
    path = place / "journal.jsonl"
    lines = [*_lines(dice.choice((path, path, OLD / "journal.jsonl")))]
    kind = dice.random()
    if kind < 0.7:
        for _ in range(dice.choice((1, 1, 2, 5))):
            at = dice.randrange(len(lines))
            plain = json.loads(lines[at])
            plain.pop("sum", None)
            lines[at] = sealed(_mutated(plain, dice))
    elif kind < 0.85:  # lines of other campaigns, twice, or in another order
        other = _lines(OLD / "journal.jsonl") + lines
        lines[dice.randrange(len(lines)) :] = dice.sample(other, dice.randrange(1, len(other)))
    else:
        text = bytearray(b"\n".join(lines))
        for _ in range(dice.randrange(1, 20)):
            text[dice.randrange(len(text))] = dice.randrange(256)
        lines = bytes(text).split(b"\n")
    path.write_bytes(b"\n".join(lines) + b"\n" * dice.choice((0, 1, 1, 1)))
    if dice.random() < 0.2:
        plain = json.loads((place / "result.json").read_bytes())
        (place / "result.json").write_text(json.dumps(_mutated(plain, dice)))
        path.unlink()


# ---- qlogs and series -----------------------------------------------------------------------


def mutate_qlog(path: Path, dice: random.Random) -> None:
    """Change values of a qlog, its form or its bytes."""
    records = [json.loads(each) for each in _qlog().split("\x1e")[1:]]
    for _ in range(dice.choice((1, 1, 2, 5))):
        _mutated(records[dice.randrange(len(records))], dice)
    text = dice.choice((
        "".join(f"\x1e{json.dumps(each)}\n" for each in records), "\n".join(map(json.dumps, records)),
        json.dumps({"qlog_version": "0.3", "traces": [{"events": records[1:]}]}),
    ))  # fmt: skip
    content = bytearray(text.replace("Infinity", "1e999").encode("utf-8", "surrogatepass"))
    if dice.random() < 0.2:
        for _ in range(dice.randrange(1, 20)):
            content[dice.randrange(len(content))] = dice.randrange(256)
    path.write_bytes(content)


def mutate_series(path: Path, dice: random.Random) -> None:
    """Change values, a type or the shape of a file of series."""
    table = pq.ParquetFile(path).read()
    at = dice.randrange(1, table.num_columns)
    name, column = table.column_names[at], table.column(at)
    kind = dice.randrange(5)
    if kind < 3:
        values = column.to_pylist()
        for _ in range(dice.choice((1, 3, len(values)))):
            values[dice.randrange(len(values))] = dice.choice((*NUMBERS, 2.0**62, 2.0**53, None))
        made = pa.array([None if value is None else float(value) for value in values], pa.float64())
        if kind == 0:
            with np.errstate(all="ignore"):
                made = pa.array(np.array(made.to_numpy(zero_copy_only=False)).astype(np.int64))
        table = table.set_column(at, name, made)
    elif kind == 3:
        texts = pa.array([dice.choice(TEXTS[:6]) for _ in range(len(table))])
        table = dice.choice((table.set_column(at, name, texts), table.drop_columns([name]), table.slice(0, 0)))
    else:
        metadata = {
            **(table.schema.metadata or {}),
            b"clock_offset": dice.choice((b"nan", b"1e308", b"inf", b"x", b"-1")),
        }
        table = table.replace_schema_metadata(metadata)
    pq.write_table(table, path)
