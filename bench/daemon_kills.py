"""Counts lost runs and wrong verdicts while a campaign's Docker daemon is killed with kill -9 and frozen.

Run it with `make bench-daemon-kills`.
"""
# ruff: noqa: T201 - a script

from __future__ import annotations

import os
import random
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.script import DAEMON, ROOT, counts_table, options_parser, run
from bench.soak import GRACE, journalled, readable, test_case
from quicsat.docker.client import Daemon
from quicsat.docker.containers import list_containers
from quicsat.model.clock import Clock
from quicsat.model.outcomes import Outcome
from quicsat.results.store import load
from tests.own_engine import OwnEngine, own_engine

AWAY = (0.0, 10.0)
"""Seconds between the death of a daemon and its new start."""
FROZEN = (5.0, 40.0)
"""Seconds for which a daemon is frozen."""
CALM = (5.0, 30.0)
"""Seconds between two faults, so that runs come to their end."""
PACE = 2
"""Runs that are planned for each fault."""
ENGINES_OWN = ("containerd-shim", "runc", "iptables")
"""Processes that a killed engine loses sight of, and that hold nothing of ours."""
LONGEST = 600.0
"""Seconds after the last fault within which a campaign has to end by itself, besides those of its runs."""


@dataclass(frozen=True)
class Fault:
    """Something that happened to the daemon."""

    kind: str
    """``kill`` or ``freeze``."""
    after: float
    """Seconds since the start of the campaign."""
    seconds: float
    """How long the daemon was away, or frozen."""


def main() -> int:
    """Exit status: 0 all bars are kept, 1 one is not, 3 no daemon of one's own can be raised here."""
    options = options_parser(__doc__, {"--kills": 20, "--freezes": 10, "--seed": 1}).parse_args()
    chance = random.Random(options.seed)
    kinds = ["kill"] * options.kills + ["freeze"] * options.freezes
    chance.shuffle(kinds)
    with own_engine(DAEMON, "simulator", "quic-go") as engine, tempfile.TemporaryDirectory() as folder:
        return disturb(engine, kinds, chance, Path(folder))


def disturb(engine: OwnEngine, kinds: Sequence[str], chance: random.Random, folder: Path) -> int:
    """A campaign with these faults, then what it left is made without any; the exit status."""
    directory = folder / "campaign"
    (folder / "soak.yaml").write_text(test_case(Clock.REAL), encoding="utf-8")
    words = ["-s", "quic-go", "-c", "quic-go", "-t", str(folder / "soak.yaml"), "-l", str(directory), "--no-qlog"]
    repetitions = str(max(1, PACE * len(kinds)))
    begin = time.monotonic()
    process = command(engine, folder, "run", *words, "--images", "local", "--repetitions", repetitions)
    faults, acknowledged = [], set[tuple[str, int, int]]()
    while process.poll() is None and not (directory / "journal.jsonl").exists():
        time.sleep(0.1)
    for kind in kinds:
        time.sleep(chance.uniform(*CALM))
        if process.poll() is not None:
            break
        acknowledged |= journalled(directory)
        faults.append(inflict(engine, kind, chance, begin))
        print(f"{len(faults)}: {told(faults[-1])}, {len(acknowledged)} results", flush=True)
    status = wait(process, LONGEST + 60.0 * int(repetitions))
    acknowledged |= journalled(directory)
    resumed = None
    if status not in (0, None):
        resumed = wait(command(engine, folder, "resume", str(directory)), LONGEST)
    deadline = time.monotonic() + GRACE
    while engine.networks() and time.monotonic() < deadline:
        time.sleep(0.2)
    return report(engine, directory, faults, acknowledged, (status, resumed), int(repetitions), folder / "said")


def command(engine: OwnEngine, folder: Path, *words: str) -> subprocess.Popen[bytes]:
    """``run.py`` at this engine; what it says goes to ``said``."""
    with (folder / "said").open("ab") as said:
        environment = {**os.environ, "DOCKER_HOST": engine.url}
        whole = [sys.executable, "run.py", *words]
        return subprocess.Popen(whole, cwd=ROOT, env=environment, stdout=subprocess.DEVNULL, stderr=said)


def wait(process: subprocess.Popen[bytes], patience: float) -> int | None:
    """The exit status; None if it did not end by itself."""
    try:
        return process.wait(patience)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
        return None


def inflict(engine: OwnEngine, kind: str, chance: random.Random, begin: float) -> Fault:
    """One fault, and its end."""
    after = time.monotonic() - begin
    if kind == "kill":
        seconds = chance.uniform(*AWAY)
        engine.kill()
        time.sleep(seconds)
        engine.start()
    else:
        seconds = chance.uniform(*FROZEN)
        engine.freeze()
        time.sleep(seconds)
        engine.thaw()
    return Fault(kind, after, seconds)


def told(fault: Fault) -> str:
    """A fault as a person reads it."""
    return f"{fault.kind} after {fault.after:.1f} s, for {fault.seconds:.1f} s"


def report(
    engine: OwnEngine,
    directory: Path,
    faults: Sequence[Fault],
    acknowledged: set[tuple[str, int, int]],
    statuses: tuple[int | None, int | None],
    planned: int,
    said: Path,
) -> int:
    """Print the figures; the exit status."""
    record = load(directory)
    results = record.result_set.results
    blamed = [each for each in record.history if each.verdict.outcome not in (Outcome.SUCCEEDED, Outcome.ERROR)]
    offenders = [each for each in record.result_set.compliance if not each.compliant]
    errors = Counter(each.verdict.code for each in record.history if each.verdict.outcome is Outcome.ERROR)
    for each in (*blamed, *offenders):
        print(each)
    status, resumed = statuses
    bars = {
        "finished results lost": len(acknowledged - readable(directory)),
        "runs in which a pair is blamed": len(blamed),
        "images that are called not compliant": len(offenders),
        "runs without a result in the end": planned - sum(r.verdict.outcome is Outcome.SUCCEEDED for r in results),
        "containers left": len(list_containers(Daemon(engine.url, "look"))),
        "processes of containers left": len([name for name in engine.processes().values() if name not in ENGINES_OWN]),
        "network namespaces left": len(engine.networks()),
        "campaigns that did not end": int(status is None),
    }
    counts = Counter(fault.kind for fault in faults)
    print(
        counts_table(
            [
                ("kills of the daemon", counts["kill"]),
                ("freezes of the daemon", counts["freeze"]),
                ("runs", planned),
                ("attempts that were repeated", sum(errors.values())),
                *((f"  {code}", count) for code, count in errors.most_common()),
                ("exit status of the campaign", status),
                ("exit status of its resumption", "not needed" if status == 0 else resumed),
                *((name, count) for name, count in bars.items()),
            ]
        )
    )
    failed = any(bars.values())
    if failed:
        print(said.read_text(errors="replace")[-3000:])
    return int(failed)


if __name__ == "__main__":
    run(main)
