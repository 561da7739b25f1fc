#!/usr/bin/env python3
"""Measures virtual time: fidelity, reproducibility, cost of a run, throughput of a campaign; `make bench-virtual`.

  bench/virtual.py -o DIR                                              # everything, hours
  bench/virtual.py -o DIR --part reproducibility --implementations quic-go aioquic
  bench/virtual.py -o DIR --part fidelity --real A B --virtual C       # from stored campaigns

It prints Markdown tables and writes the numbers to virtual.json. The images must exist at the daemon.
"""
# ruff: noqa: E402, T201 - a script

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from bench import fidelity, reproducibility
from bench.container_cpu import ContainerCpu
from bench.reproducibility import Repetition
from quicsat.config import loader
from quicsat.docker.address import default_daemon
from quicsat.docker.client import Daemon
from quicsat.model.clock import Clock
from quicsat.model.emulated_link import loss_share
from quicsat.model.results import RunResult
from quicsat.model.test_case import TestCase
from quicsat.report.table import Column, Table, Unit, render
from quicsat.results.document import StoredResults
from quicsat.results.store import load

IMPLEMENTATIONS = ("quic-go", "aioquic", "picoquic", "quiche", "quinn", "ngtcp2", "msquic", "s2n-quic")
TEST_CASES = ("terrestrial", "sat", "satloss")
THROUGHPUT = ("quic-go", "picoquic", "quinn", "ngtcp2")
"""Servers and clients of the campaign whose throughput is measured."""
LOOPS = 4
"""Busy loops of a busy machine."""
SEED = "1"
TINY = """\
name: tiny
abbreviation: TINY
description: a file of 1 KiB over a terrestrial link
link: {scenario: simple-p2p, delay: 15 ms, rate: 20 Mbit/s, queue: 25}
file size: 1 KiB
repetitions: 1
timeout: 60 s
"""
COSTS = (("quic-go", "tiny"), ("quic-go", "satloss"), ("picoquic", "sat"))
"""Pairs of an implementation with itself, and the test case."""


# ---- campaigns ------------------------------------------------------------------------------


def campaign(directory: Path, clock: str, names: Sequence[str], cases: Sequence[str], *more: str) -> StoredResults:
    """Carry a campaign out, all ``names`` with each other, and read it; pairs may fail, a campaign must not."""
    words = ["run", "--clock", clock, "--images", "local", "--skip-compliance-check", "-l", str(directory), *more]
    words += ["-s", *names, "-c", *names, "-t", *cases, "--seed", SEED]
    directory.parent.mkdir(parents=True, exist_ok=True)
    log = directory.with_name(f"{directory.name}.log")
    with log.open("wb") as said:
        command = [sys.executable, str(ROOT / "run.py"), *words]
        status = subprocess.run(command, cwd=ROOT, stdout=said, stderr=said, check=False).returncode
    if status not in (0, 1, 3) or not (directory / "journal.jsonl").exists():
        sys.exit(f"bench-virtual: a campaign ended with exit status {status}; see {log}")
    return load(directory)


def stored(places: Sequence[Path], clock: Clock) -> list[StoredResults]:
    """Campaigns that were made before; exits if one has another clock."""
    records = [load(place) for place in places]
    for place, record in zip(places, records, strict=True):
        if record.result_set.manifest.clock is not clock:
            sys.exit(f"bench-virtual: {place} ran in {record.result_set.manifest.time}, not in {clock} time")
    return records


@contextmanager
def busy_loops(count: int) -> Iterator[None]:
    """Other load: processes that compute while the block runs."""
    processes = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(count)]
    try:
        yield
    finally:
        for process in processes:
            process.kill()
            process.wait()


def tell(table: Table) -> None:
    """As Markdown."""
    print(f"\n{render(table, 'markdown')}", flush=True)


# ---- parts ----------------------------------------------------------------------------------


def measure_fidelity(options: argparse.Namespace) -> Any:
    """Both distributions of all pairs; without stored campaigns, it makes them first."""
    real, virtual = stored(options.real, Clock.REAL), stored(options.virtual, Clock.VIRTUAL)
    repetitions = str(options.repetitions)
    if not real:
        place = options.output / "fidelity-real"
        real = [campaign(place, "real", options.implementations, options.test, "--repetitions", repetitions)]
    if not virtual:
        known = loader.load_known_test_cases(ROOT / "testcases")
        for words, cases in by_repetitions(options.test, known, repetitions).items():
            place = options.output / f"fidelity-virtual-{words}"
            virtual.append(campaign(place, "virtual", options.implementations, cases, "--repetitions", words))
    pairs = fidelity.fidelity((each.result_set for each in real), (each.result_set for each in virtual))
    tell(fidelity.table(pairs))
    return fidelity.as_json(pairs)


def by_repetitions(names: Sequence[str], known: dict[str, TestCase], several: str) -> dict[str, list[str]]:
    """Repetitions in virtual time -> test cases: 1 without losses, ``several`` where each seed loses other packets."""
    found = dict[str, list[str]]()
    for name in names:
        link = known[name].emulated
        lossy = loss_share(link.forward.loss) or loss_share(link.back.loss)
        found.setdefault(several if lossy else "1", []).append(name)
    return found


def measure_reproducibility(options: argparse.Namespace) -> Any:
    """Each implementation with itself, several times with one seed, on an idle machine and beside busy loops."""
    found = []
    for name in options.implementations:
        for case in options.test:
            situations = []
            for situation, loops in (("idle", 0), ("busy", LOOPS)):
                places = [
                    options.output / f"{name}-{case}-{situation}-{number + 1}" for number in range(options.repetitions)
                ]
                with busy_loops(loops):
                    situations.append([repetition(place, name, case) for place in places])
            found.append(reproducibility.reproducibility(f"{name}, {case}", *situations))
            tell(reproducibility.table(found[-1:]))
    tell(reproducibility.table(found))
    return reproducibility.as_json(found)


def repetition(place: Path, name: str, case: str) -> Repetition:
    """One run of an implementation with itself in virtual time."""
    record = campaign(place, "virtual", [name], [case], "--repetitions", "1")
    [result] = record.result_set.results
    values = result.measurement.values if result.measurement is not None else {}
    return Repetition(values.get("goodput"), place / str(result.key.path) / "sim")


def measure_cost(options: argparse.Namespace) -> Any:
    """Wall time of single runs by phase, and CPU time of their machines."""
    options.output.mkdir(parents=True, exist_ok=True)
    tiny = options.output / "tiny.yaml"
    tiny.write_text(TINY, encoding="utf-8")
    rows, numbers = [], []
    for name, case in COSTS:
        place = str(tiny) if case == "tiny" else case
        results, cpu = list[RunResult](), list[float]()
        for number in range(options.repetitions):
            meter = ContainerCpu(Daemon(default_daemon(os.environ).daemon, "bench"))
            with meter.watching():
                directory = options.output / f"cost-{name}-{case}-{number + 1}"
                record = campaign(directory, "virtual", [name], [place], "--repetitions", "1")
            results += record.result_set.results
            cpu.append(meter.seconds)
        whole = [wall(each) for each in results]
        machine = [each.evidence.phases.get("transfer", 0.0) for each in results]
        rows.append((
            f"{name}, {case}", len(results), statistics.median(whole), min(whole), max(whole),
            statistics.median(machine), statistics.median(cpu), results[0].verdict.outcome.value,
        ))  # fmt: skip
        numbers.append({"pair": name, "test_case": case, "phases": [each.evidence.phases for each in results],
                        "machine_cpu": cpu})  # fmt: skip
    columns = (
        Column("server and client"), Column("n", Unit.COUNT), Column("run, median", Unit.SECONDS),
        Column("lowest", Unit.SECONDS), Column("highest", Unit.SECONDS), Column("machine, median", Unit.SECONDS),
        Column("CPU time of the machine, median", Unit.SECONDS), Column("outcome"),
    )  # fmt: skip
    note = (
        "Run: wall time of all phases but the analysis of the traces. Machine: from its start to its power-off. For a "
        "file of 1 KiB this is boot, set-up and power-off."
    )
    tell(Table("cost", "Cost of a run in virtual time", columns, tuple(rows), (note,)))
    return numbers


def wall(result: RunResult) -> float:
    """Seconds that a run took, without analysis."""
    return sum(duration for phase, duration in result.evidence.phases.items() if phase != "analyse")


def measure_throughput(options: argparse.Namespace) -> Any:
    """A campaign over sat, as many runs at a time as there are CPUs, against single runs in real time.

    The estimate takes the phases of real runs of the same pairs, from stored campaigns if there are any.
    """
    names = options.implementations
    real = stored(options.real, Clock.REAL)
    if not real:
        real = [campaign(options.output / "throughput-real", "real", names, ["sat"], "--repetitions", "1")]
    estimate = serial_estimate([each.result_set.results for each in real], names, options.repetitions)
    begin = time.monotonic()
    place = options.output / "throughput-virtual"
    record = campaign(place, "virtual", names, ["sat"], "--repetitions", str(options.repetitions))
    duration = time.monotonic() - begin
    results = record.result_set.results
    repeated = len(record.history) - len(results)
    columns = (
        Column("runs", Unit.COUNT), Column("virtual, wall time", Unit.SECONDS, 0),
        Column("real, one after another", Unit.SECONDS, 0), Column("ratio", Unit.SHARE, 1),
        Column("repeated", Unit.COUNT),
    )  # fmt: skip
    row = (len(results), duration, estimate, duration / estimate, repeated)
    note = (
        "Wall time of the whole command. Real: the sum of the phases of real runs of the same pairs; of each phase the "
        "shortest of a pair's repetitions."
    )
    tell(Table("throughput", f"{len(names) ** 2} pairs over sat", columns, (row,), (note,)))
    return {"runs": len(results), "virtual": duration, "real": estimate, "repeated": repeated}


def serial_estimate(campaigns: Sequence[Sequence[RunResult]], names: Sequence[str], repetitions: int) -> float:
    """Seconds of ``repetitions`` runs of each pair of ``names`` over sat; exits if a pair is missing.

    Of each phase of a pair the shortest counts, as the machine may have been busy in the real campaigns.
    """
    found = dict[tuple[str, str], dict[str, float]]()
    for result in (each for results in campaigns for each in results):
        if result.test_case == "sat":
            shortest = found.setdefault((result.server, result.client), {})
            for phase, duration in result.evidence.phases.items():
                shortest[phase] = min(duration, shortest.get(phase, duration))
    wanted = [(server, client) for server in names for client in names]
    if missing := [f"{server}_{client}" for server, client in wanted if (server, client) not in found]:
        sys.exit(f"bench-virtual: the real campaigns have no runs of {missing[0]} over sat")
    return repetitions * sum(sum(found[pair].values()) for pair in wanted)


PARTS: dict[str, Callable[[argparse.Namespace], Any]] = {
    "fidelity": measure_fidelity,
    "reproducibility": measure_reproducibility,
    "cost": measure_cost,
    "throughput": measure_throughput,
}
REPETITIONS = {"fidelity": 5, "reproducibility": 5, "cost": 3, "throughput": 3}
CASES = {"fidelity": TEST_CASES, "reproducibility": ("sat",)}


def main() -> int:
    """Run the chosen parts; everything is printed, nothing judged."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--part", nargs="+", choices=PARTS, default=list(PARTS), help="default: all")
    parser.add_argument(
        "--implementations", nargs="+", metavar="NAME",
        help=f"of all parts but cost (default: {' '.join(IMPLEMENTATIONS)}; of throughput {' '.join(THROUGHPUT)})",
    )  # fmt: skip
    parser.add_argument("-t", "--test", nargs="+", metavar="NAME", help="of fidelity and reproducibility")
    parser.add_argument("--repetitions", type=int, help="default: 5; of cost and throughput 3")
    parser.add_argument("--real", type=Path, nargs="+", default=[], metavar="DIR", help="campaigns in real time")
    parser.add_argument("--virtual", type=Path, nargs="+", default=[], metavar="DIR", help="and in virtual time")
    parser.add_argument("-o", "--output", type=Path, required=True, metavar="DIR", help="for results directories")
    options = parser.parse_args()
    options.output.mkdir(parents=True, exist_ok=True)
    numbers = dict[str, Any]()
    for part in options.part:
        chosen = argparse.Namespace(**vars(options))
        chosen.repetitions = options.repetitions or REPETITIONS[part]
        chosen.implementations = options.implementations or (THROUGHPUT if part == "throughput" else IMPLEMENTATIONS)
        chosen.test = options.test or CASES.get(part, ())
        load_before = os.getloadavg()[0]
        numbers[part] = PARTS[part](chosen)
        print(f"\n{part}: load {load_before:.1f} before, {os.getloadavg()[0]:.1f} after; "
              f"{chosen.repetitions} repetitions", flush=True)  # fmt: skip
        (options.output / "virtual.json").write_text(json.dumps(numbers, indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
