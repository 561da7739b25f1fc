"""Counts exceptions, hangs and wrong verdicts of the analysis of 1,000 damaged traces.

    make bench-trace-fuzz
    python -m bench.trace_fuzz 200 7     # 200 traces, seed 7

Bars: no exception, no analysis longer than 60 s, less than 1 GiB of memory, and of the traces whose payload is another
at least 99 % end in a verdict other than succeeded.
"""
# ruff: noqa: T201 - a script

from __future__ import annotations

import random
import resource
import shutil
import sys
import tempfile
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path

from bench.script import ROOT, judged
from quicsat.analysis.analyse import analyse
from quicsat.model.outcomes import ErrorCode, Outcome
from quicsat.model.run import File
from quicsat.traces.pcap import check
from quicsat.traces.records import Condition
from quicsat.traces.run_traces import CLIENT_TRACE, SERVER_TRACE
from tests.analysis.test_analyse import EVIDENCE, RUN
from tests.traces.test_pcap import mutate

SIZES = {"lossy": [30_000], "many": [3000, 10, 1, 5000, 7000, 0, 200], "retry": [8000, 2000]}
"""Recorded runs in tests/data, and the files that they fetched."""
LONGEST, MOST_MEMORY, FLAGGED = 60.0, 1024**3, 0.99


def changed(path: Path, digests: list[int]) -> bool:
    """Whether the payload of the trace is no longer what it was."""
    state = check(path)
    return state.condition is not Condition.OK or state.datagrams.digest.tolist() != digests


def main() -> int:
    """Print the counts, and whether the bars are reached."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    chance = random.Random(int(sys.argv[2]) if len(sys.argv) > 2 else 1)
    outcomes: Counter[str] = Counter()
    exceptions = altered = flagged = 0
    longest = 0.0
    with tempfile.TemporaryDirectory(prefix="mutate-") as name:
        for number in range(count):
            run = chance.choice(list(SIZES))
            directory = Path(name, str(number))
            shutil.copytree(ROOT / "tests" / "data" / run, directory)
            path = directory / chance.choice((CLIENT_TRACE, SERVER_TRACE))
            digests = check(path).datagrams.digest.tolist()
            whole = path.read_bytes()
            other = chance.choice((b"", chance.randbytes(999))) if number % 50 == 0 else mutate(whole, chance)
            path.write_bytes(other)
            files = tuple(File(str(n), size, "") for n, size in enumerate(SIZES[run]))
            evidence = replace(EVIDENCE, offered=files, downloaded=files, phases={})
            begun = time.monotonic()
            verdict, _ = analyse(RUN, evidence, directory)
            if verdict.code is ErrorCode.UNREADABLE:
                exceptions += 1
                print(verdict.reason)
            outcomes[verdict.code.value or verdict.outcome.value] += 1
            if changed(path, digests):
                altered += 1
                flagged += verdict.outcome is not Outcome.SUCCEEDED
            longest = max(longest, time.monotonic() - begun)
            shutil.rmtree(directory)
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    for what, times in outcomes.most_common():
        print(f"{times:6} {what}")
    print(f"{count} mutated traces: {exceptions} exceptions, longest {longest:.2f} s, memory {memory / 2**20:.0f} MiB")
    print(f"payload changed in {altered}, of which {flagged} ({flagged / max(altered, 1):.1%}) were flagged")
    reached = not exceptions and longest < LONGEST and memory < MOST_MEMORY and flagged >= FLAGGED * altered
    return judged(not reached)


if __name__ == "__main__":
    sys.exit(main())
