#!/usr/bin/env python3
"""Compares goodput over a real and an emulated link of the same parameters, in random order, with a test.

Run it with `make bench-real-vs-emulated`.
The emulated one is at the engine that DOCKER_HOST names; the real one is the laboratory (tests/laboratory.py), two more
daemons on this machine with NATs between them. The machine must be idle otherwise.
"""
# ruff: noqa: E402, T201 - a script

from __future__ import annotations

import argparse
import dataclasses
import datetime
import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from prettytable import PrettyTable

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from quicsat.analysis.run_outcome import LAG_LIMIT, LAG_SHARE
from quicsat.config import loader
from quicsat.model.emulated_link import EmulatedLink
from quicsat.model.errors import MachineError
from quicsat.model.results import RunResult
from quicsat.model.units import seconds
from quicsat.results.document import StoredResults
from quicsat.results.store import load
from quicsat.statistics.significance import difference, holm
from tests.dockerds import LaboratoryError
from tests.laboratory import Laboratory, LinkRecord, lab_case, laboratory, prepare

EMULATED, REAL = "sat", "laboratory"
BAR = 0.05
"""Share by which mean goodputs may differ."""
ENOUGH = 0.8
"""Share of the repetitions that must be left when disturbed ones have been taken out."""
METRICS = {
    "goodput": ("Mbit/s", 1e6),
    "handshake_time": ("ms", 1e-3),
    "rtt_min": ("ms", 1e-3),
    "loss_forward": ("%", 0.01),
}
DEFAULT_ENGINE = "unix:///var/run/docker.sock"


@dataclass(frozen=True)
class Way:
    """The runs of a pair over one of both links."""

    values: dict[str, list[float]]
    """By metric, of the runs that count."""
    lag: float
    """The most that the simulator fell behind in those, seconds."""
    disturbed: tuple[float, ...]
    """The most that it fell behind in each of those runs in which that was more than is allowed, seconds."""
    unsuccessful: int
    repeated: int
    """Attempts that did not count."""

    @property
    def count(self) -> int:
        """Runs that count."""
        return len(self.values["goodput"])


@dataclass(frozen=True)
class Comparison:
    """A pair over both links."""

    pair: str
    emulated: Way
    real: Way

    @property
    def change(self) -> float | None:
        """By what share the mean goodput over the real link is higher; None if a mean is missing."""
        one, other = self.emulated.values["goodput"], self.real.values["goodput"]
        return statistics.fmean(other) / statistics.fmean(one) - 1 if one and other else None


# ---- measuring ------------------------------------------------------------------------------


def measure(
    pairs: Sequence[str], repetitions: int, seed: int, output: Path
) -> tuple[dict[str, StoredResults], LinkRecord]:
    """A campaign per pair over both links in random order; what was measured, and what the laboratory's link says."""
    url = os.environ.get("DOCKER_HOST") or DEFAULT_ENGINE
    prepare(url, [word.split(":")[0] for pair in pairs for word in both(pair)[1::2]])
    link = loader.load_known_test_cases(ROOT / "testcases")[EMULATED].emulated
    output.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="quicsat-agreement-") as folder, laboratory(url, (), link) as lab:
        case = Path(folder, f"{REAL}.yaml")
        case.write_text(lab_case(REAL, "10 MiB"), encoding="utf-8")
        records = {}
        for number, pair in enumerate(pairs):
            words = [*both(pair), "-t", EMULATED, str(case), "--shuffle", "--seed", str(seed + number)]
            records[pair] = campaign(lab, url, [*words, "--repetitions", str(repetitions)], output / pair)
        said = lab.end_link()
    (output / "link.json").write_text(json.dumps(dataclasses.asdict(said)), encoding="utf-8")
    return records, said


def both(pair: str) -> tuple[str, str, str, str]:
    """``server_client`` as options."""
    server, client = pair.split("_")
    return "-s", server, "-c", client


def campaign(lab: Laboratory, url: str, words: Sequence[str], directory: Path) -> StoredResults:
    """Carry out a campaign inside the laboratory, at the engine outside; raises SystemExit if it broke off."""
    options = ["--hosts", str(lab.hosts), "--images", "local", "-l", str(directory)]
    command = lab.command(sys.executable, "run.py", "run", *words, *options)
    environment = {**os.environ, "DOCKER_HOST": url}
    status = subprocess.run(command, cwd=ROOT, env=environment, stdout=subprocess.DEVNULL, check=False).returncode
    if status not in (0, 1, 3) or not (directory / "journal.jsonl").exists():
        sys.exit(f"bench-real-vs-emulated: the campaign ended with exit status {status}; see above")
    return load(directory)


# ---- judging --------------------------------------------------------------------------------


def compare(pair: str, record: StoredResults, link: LinkRecord, allowed: float) -> Comparison:
    """What a campaign says of its pair."""

    def emulated(result: RunResult) -> float:
        return result.evidence.simulator.lag_max if result.evidence.simulator else 0.0

    def real(result: RunResult) -> float:
        return link.most_lag(*span(result))

    return Comparison(pair, way(record, EMULATED, emulated, allowed), way(record, REAL, real, allowed))


def span(result: RunResult) -> tuple[float, float]:
    """From a round trip after the client's start, before which no packet counts for goodput, to its end; since 1970."""
    evidence, phases = result.evidence, result.evidence.phases
    begin = datetime.datetime.fromisoformat(evidence.started).timestamp()
    begin += sum(phases.get(phase, 0.0) for phase in ("prepare", "create", "start"))
    round_trip = result.measurement.values.get("rtt_min", 0.0) if result.measurement else 0.0
    return begin + round_trip, begin + phases.get("transfer", 0.0)


def way(record: StoredResults, test_case: str, lag: Callable[[RunResult], float], allowed: float) -> Way:
    """The runs over one link; ``lag`` tells how far its simulator fell behind in a run."""
    results = [result for result in record.result_set.results if result.test_case == test_case]
    attempts = {(result.repetition, result.attempt) for result in record.history if result.test_case == test_case}
    measured = [(result.measurement.values, lag(result)) for result in results if result.measurement is not None]
    kept = [(values, behind) for values, behind in measured if behind <= allowed]
    return Way(
        values={name: [values[name] for values, _ in kept if name in values] for name in METRICS},
        lag=max((behind for _, behind in kept), default=0.0),
        disturbed=tuple(behind for _, behind in measured if behind > allowed),
        unsuccessful=len(results) - len(measured),
        repeated=len(attempts) - len(results),
    )


# ---- telling --------------------------------------------------------------------------------


def shown(values: Sequence[float], unit: float) -> str:
    """Mean, standard deviation, n."""
    if not values:
        return "-"
    spread = statistics.stdev(values) if len(values) > 1 else 0.0
    return f"{statistics.fmean(values) / unit:.3f} ± {spread / unit:.3f} ({len(values)})"


def metrics(comparisons: Sequence[Comparison]) -> PrettyTable:
    """A row per pair and metric."""
    table = PrettyTable(["pair", "metric", "emulated", "real", "difference", "p"], align="l")
    rows = [(each, name) for each in comparisons for name in METRICS]
    tests = [difference(each.emulated.values[name], each.real.values[name]) for each, name in rows]
    for (each, name), p in zip(rows, holm(tests), strict=True):
        one, other = each.emulated.values[name], each.real.values[name]
        word, unit = METRICS[name]
        whole = one and other and statistics.fmean(one)
        change = f"{100 * (statistics.fmean(other) / statistics.fmean(one) - 1):+.2f} %" if whole else "-"
        table.add_row([each.pair, f"{name}, {word}", shown(one, unit), shown(other, unit), change, f"{p:.3f}"])
    return table


def courses(comparisons: Sequence[Comparison]) -> PrettyTable:
    """A row per pair and link: how it went."""
    table = PrettyTable(
        ["pair", "link", "goodputs, Mbit/s", "counted", "most lag", "lagged", "unsuccessful", "repeated"], align="l"
    )
    for each in comparisons:
        for name, one in (("emulated", each.emulated), ("real", each.real)):
            goodputs = " ".join(f"{value / 1e6:.2f}" for value in sorted(one.values["goodput"]))
            lagged = f"{len(one.disturbed)}, up to {seconds(max(one.disturbed))}" if one.disturbed else "0"
            table.add_row(
                [each.pair, name, goodputs, one.count, seconds(one.lag), lagged, one.unsuccessful, one.repeated]
            )
    return table


def status(comparisons: Sequence[Comparison], repetitions: int) -> int:
    """0 if all pairs agree, 1 if one does not, 3 if too few runs were left to tell."""
    if any(min(each.emulated.count, each.real.count) < ENOUGH * repetitions for each in comparisons):
        return 3
    return int(any(each.change is None or abs(each.change) > BAR for each in comparisons))


def main() -> int:
    """Exit status: see :func:`status`."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pair", nargs="+", default=["quic-go_picoquic", "quinn_quinn"], metavar="SERVER_CLIENT")
    parser.add_argument("--repetitions", type=int, default=10)
    parser.add_argument("--seed", type=int, default=1, help="of the order")
    parser.add_argument("-o", "--output", type=Path, required=True, metavar="DIR", help="for the results directories")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    link: EmulatedLink = loader.load_known_test_cases(ROOT / "testcases")[EMULATED].emulated
    allowed = max(LAG_LIMIT, LAG_SHARE * link.round_trip_delay)
    try:
        records, said = measure(options.pair, options.repetitions, options.seed, options.output)
    except (LaboratoryError, MachineError) as error:
        sys.exit(f"bench-real-vs-emulated: {error}")
    comparisons = [compare(pair, record, said, allowed) for pair, record in records.items()]
    print(courses(comparisons))
    print(metrics(comparisons))
    print("mean ± standard deviation (n); p: exact permutation test of the means, Holm's correction over the table")
    priority = "with" if said.realtime else "without"
    print(f"The laboratory's simulator ran {priority} real-time priority and lost {said.overflows} frames.")
    print(
        f"Runs in which a simulator fell more than {seconds(allowed)} behind the clock do not count, over either link."
    )
    return status(comparisons, options.repetitions)


if __name__ == "__main__":
    sys.exit(main())
