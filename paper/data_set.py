"""The data set: the result.json of each campaign, compressed, the series of some runs, and checksums."""

import gzip
import hashlib
import re
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from quicsat.model.names import pair_folder
from quicsat.model.outcomes import Outcome
from quicsat.model.results import Manifest, Measurement, ResultSet, RunResult
from quicsat.model.test_case import TestCase
from quicsat.results.document import document, parse_document
from quicsat.results.store import JOURNAL, load
from quicsat.statistics.facts import fact_of
from quicsat.statistics.samples import EFFICIENCY, GOODPUT
from quicsat.traces.series import FILE_NAME, Series
from quicsat.traces.series import load as load_series

CHECKSUMS = "SHA256SUMS"
SUFFIX = ".json.gz"
PAPER_QUEUE = "-paper-queue"
"""End of the names of test cases that have the queue of the paper's simulator."""
PARTS = (
    "matrix", "variants", "windows", "queues", "sweeps", "limits", "real", "repeat", "another-machine", "spread",
    "delays", "quic-go-windows", "msquic-counter", "quic-go-qlog", "quic-go-start",
)  # fmt: skip
"""Parts of `make paper`, and campaigns that were started by hand; a part can have several campaigns."""
FACTS = ("initial_max_data", "initial_max_stream_data_bidi_local", "max_udp_payload_size", "max_ack_delay")
"""Transport parameters of the client (RFC 9000, section 18.2) that the report uses."""
SERIES = {
    "series": ("matrix-1", (("picoquic", "picoquic", "satloss"), ("kwik", "msquic", "sat"),
                            ("picoquic", "quic-go", "sat"), ("picoquic", "ngtcp2", "sat"))),
    "series-with-qlog": ("", (("picoquic", "quic-go", "sat"), ("quic-go", "kwik", "sat"),
                              ("quic-go", "lsquic", "sat"), ("quic-go", "picoquic", "sat"))),
}  # fmt: skip
"""Directories with series of runs, the campaign that they come from, and server, client and test case of the runs."""

Frame = Any
"""A pandas DataFrame; pandas has no types of its own."""


@dataclass(frozen=True)
class DataSet:
    """All campaigns, and one row for each run."""

    directory: Path
    campaigns: Mapping[str, Sequence[ResultSet]]
    """By name without seed, in the order of their seeds."""

    @cached_property
    def runs(self) -> Frame:
        """A row for each run; rates in bit/s, times in s, sizes in bytes. Metrics are NaN unless the run succeeded.

        ``goodput_so_far`` holds for unsuccessful runs, too: what had arrived over the time that the client ran.
        """
        rows = [
            _row(name, campaign.manifest, run)
            for name, campaigns in self.campaigns.items()
            for campaign in campaigns
            for run in campaign.results
        ]
        return pd.DataFrame(rows)

    def part(self, name: str) -> Frame:
        """The runs of a part."""
        return self.runs[self.runs.part == name]

    def named(self, campaign: str) -> Frame:
        """The runs of the campaigns with exactly this name, without seed."""
        return self.runs[self.runs.campaign == campaign]

    def of_part(self, part: str) -> list[ResultSet]:
        """The campaigns of a part."""
        return [each for name, many in self.campaigns.items() if _part(name) == part for each in many]

    def manifest(self, part: str = "matrix") -> Manifest:
        """Of the first campaign of a part."""
        return self.of_part(part)[0].manifest

    def series(self, server: str, client: str, test_case: str, *, qlog: bool = False) -> Series:
        """The series of a run with the first seed; ``qlog``: of a run with qlogs."""
        path = self.directory / ("series-with-qlog" if qlog else "series") / _folder(server, client, test_case)
        found = load_series(path)
        if found is None:
            raise FileNotFoundError(path)
        return found


def _row(name: str, manifest: Manifest, run: RunResult) -> dict[str, Any]:
    evidence, case = run.evidence, next(case for case in manifest.test_cases if case.name == run.test_case)
    good = run.verdict.outcome is Outcome.SUCCEEDED
    values = run.measurement.values if good and run.measurement else {}
    transfer, host, simulator = evidence.transfer_time or np.nan, evidence.host, evidence.simulator
    received = _received(run)
    forward, back = (simulator.forward, simulator.back) if simulator else (None, None)
    return {
        "campaign": name,
        "part": _part(name),
        "seed": manifest.seed + run.repetition - 1,
        "loss_seed": evidence.seed,
        "server": run.server,
        "client": run.client,
        "test_case": run.test_case,
        "link": run.test_case.removesuffix(PAPER_QUEUE),
        "outcome": run.verdict.outcome.value,
        "reason": run.verdict.reason,
        "succeeded": good,
        "timed_out": run.verdict.outcome is Outcome.TIMEOUT,
        **values,
        "goodput_so_far": values[GOODPUT] if good else np.nan if received is None else 8 * received / transfer,
        "received": received,
        "rate": case.emulated.forward.rate,
        "round_trip": case.emulated.round_trip_delay,
        "file_size": sum(case.file_sizes),
        "timeout": case.timeout,
        **{fact: _number(fact_of(run, f"client.{fact}")) for fact in FACTS},
        "forward_packets": forward.received if forward else np.nan,
        "forward_queue_drops": forward.queue_drops if forward else np.nan,
        "forward_loss_drops": forward.loss_drops if forward else np.nan,
        "back_queue_drops": back.queue_drops if back else np.nan,
        "started": pd.Timestamp(evidence.started),
        "wall": sum(evidence.phases.values()),
        "processor": host.processor if host else "",
        "kernel": host.kernel if host else "",
        "load": host.load_before if host else np.nan,
        "neighbours": host.neighbours if host else np.nan,
    }


def _received(run: RunResult) -> float | None:
    """Bytes of the file that arrived, according to the traces, or else what the client had written."""
    if run.verdict.received is not None:
        return run.verdict.received
    files = run.evidence.downloaded
    return sum(file.size for file in files) if files else None


def _number(fact: object) -> float:
    return float(fact) if isinstance(fact, int) else np.nan


def _part(campaign: str) -> str:
    return next((part for part in PARTS if campaign == part or campaign.startswith(f"{part}-")), campaign)


def _folder(server: str, client: str, test_case: str) -> Path:
    return Path(pair_folder(server, client), test_case, "1")


def read(directory: Path) -> DataSet:
    """The data set in a directory."""
    found: dict[str, dict[int, ResultSet]] = {}
    for path in sorted(directory.glob(f"*{SUFFIX}")):
        name, seed = re.findall(r"^(.+?)(?:-(\d+))?$", path.name.removesuffix(SUFFIX))[0]
        campaign = parse_document(path, gzip.decompress(path.read_bytes())).result_set
        found.setdefault(name, {})[int(seed or 0)] = campaign
    return DataSet(directory, {name: [many[seed] for seed in sorted(many)] for name, many in found.items()})


# ---- writing --------------------------------------------------------------------------------


def collect(results: Path, directory: Path) -> int:
    """Write the result.json and the series of all campaigns below ``results`` that have results; how many."""
    directory.mkdir(parents=True, exist_ok=True)
    count = 0
    for journal in sorted(results.glob(f"*/{JOURNAL}")):
        found = load(journal.parent).result_set
        if found.results:
            (directory / f"{journal.parent.name}{SUFFIX}").write_bytes(gzip.compress(document(found), mtime=0))
            count += 1
    for folder, (campaign, runs) in SERIES.items():
        for run in runs:
            name = campaign or ("quic-go-qlog" if run[0] == "picoquic" else "quic-go-start")
            source, target = (each / _folder(*run) / FILE_NAME for each in (results / name, directory / folder))
            if source.is_file():
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(source, target)
    write_checksums(directory)
    return count


def files(directory: Path) -> list[Path]:
    """All files of the data set except the checksums."""
    return sorted(path for path in directory.rglob("*") if path.is_file() and path.name != CHECKSUMS)


def write_checksums(directory: Path) -> None:
    """The SHA-256 checksums of all files, as `sha256sum` writes them."""
    lines = (f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.relative_to(directory)}\n"
             for path in files(directory))  # fmt: skip
    (directory / CHECKSUMS).write_text("".join(lines), encoding="ascii")


# ---- campaigns as one, for figures ----------------------------------------------------------


def as_one(campaigns: Sequence[ResultSet], servers: Callable[[str], bool] = bool) -> ResultSet:
    """Campaigns as one whose repetitions are the seeds; ``servers``: whether to keep a server."""
    manifests = [each.manifest for each in campaigns]
    cases: dict[str, TestCase] = {}
    for manifest in manifests:
        for case in manifest.test_cases:
            known = cases[case.name].repetitions if case.name in cases else 0
            cases[case.name] = replace(cases.get(case.name, case), repetitions=max(known, manifest.seed))
    manifest = replace(
        manifests[0],
        servers=tuple(dict.fromkeys(name for each in manifests for name in each.servers if servers(name))),
        clients=tuple(dict.fromkeys(name for each in manifests for name in each.clients)),
        implementations=tuple({each.name: each for one in manifests for each in one.implementations}.values()),
        test_cases=tuple(cases.values()),
    )
    runs = tuple(
        replace(run, repetition=each.manifest.seed + run.repetition - 1)
        for each in campaigns
        for run in each.results
        if servers(run.server)
    )
    return replace(campaigns[0], manifest=manifest, results=runs, earlier=())


def with_timeouts(results: ResultSet) -> ResultSet:
    """The results in which a run that timed out counts with what had arrived."""
    rates = {case.name: case.emulated.forward.rate for case in results.manifest.test_cases}
    return replace(results, results=tuple(_counted(run, rates[run.test_case]) for run in results.results))


def _counted(run: RunResult, rate: float) -> RunResult:
    received, duration = _received(run), run.evidence.transfer_time
    if run.verdict.outcome is not Outcome.TIMEOUT or received is None or not duration:
        return run
    value = 8 * received / duration
    verdict = replace(run.verdict, outcome=Outcome.SUCCEEDED)
    return replace(run, verdict=verdict, measurement=Measurement({GOODPUT: value, EFFICIENCY: value / rate}))
