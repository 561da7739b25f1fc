#!/usr/bin/env python3
"""Shows that variants take effect: each server against its siblings and against itself, over a link that loses once.

All runs lose the same packet. What a server has sent by when is compared: two runs of one variant differ by what chance
does, two variants by what the variant does, too. Where there is a qlog, its windows are shown.
"""
# ruff: noqa: E402, T201 - a script

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from statistics import median

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from interop import inventory
from interop.model import Implementation, Outcome, Protocol
from interop.store import load
from interop.tables import draw
from interop.traces import qlog
from interop.traces.columns import Floats
from interop.traces.network import TCP, UDP
from interop.traces.pcap import check

CLIENT, TCP_CLIENT = "quic-go", "curl"
CASE = "variants"
CAMPAIGNS = ("first", "again")
BUSY, PATIENCE = 75, 900.0
STEP = 0.05
"""Seconds between two points at which what was sent is compared."""
TIMES_CHANCE, LEAST = 2.0, 0.01
"""A variant takes effect if it differs from its siblings so many times as much as from itself, and at least so much."""
REDUCTION = 0.9
"""A window that falls below this share of itself has been reduced."""


@dataclass(frozen=True)
class Sent:
    """What a server sent in one run."""

    duration: float
    """Seconds from its first to its last packet."""
    bytes: Floats
    """UDP payload so far, every STEP seconds."""
    windows: tuple[float, ...]
    """Congestion window after each reduction over that before, from the qlog."""
    words: tuple[str, ...]
    """What the qlog says of the congestion control in words."""


@dataclass(frozen=True)
class Effect:
    """What makes one variant another one than its siblings."""

    name: str
    chance: float
    """Distance between its two runs."""
    nearest: str
    distance: float
    """To the sibling that is most like it."""
    chance_of_nearest: float

    @property
    def shown(self) -> bool:
        """Whether more than chance lies between them."""
        return self.distance > max(LEAST, TIMES_CHANCE * max(self.chance, self.chance_of_nearest))


def distance(one: Floats, other: Floats) -> float:
    """Mean difference between what two runs had sent by the same time, as a share of all; 0 to 1."""
    length = max(len(one), len(other))
    full = [np.pad(each, (0, length - len(each)), mode="edge") for each in (one, other)]
    return float(np.mean(np.abs(full[0] - full[1])) / max(full[0][-1], full[1][-1]))


def effects(runs: Mapping[str, Sequence[Floats]]) -> list[Effect]:
    """For each name of one implementation; ``runs`` has the two of each. Siblings are its variants, by their colon."""
    chance = {name: distance(*pair) for name, pair in runs.items()}
    found = []
    for name, own in runs.items():
        gaps = {
            other: min(distance(one, another) for one in own for another in theirs)
            for other, theirs in runs.items()
            if other != name and ":" in other
        }
        if gaps:
            nearest = min(gaps, key=lambda other: gaps[other])
            found.append(Effect(name, chance[name], nearest, gaps[nearest], chance[nearest]))
    return found


# ---- what a run left ------------------------------------------------------------------------


def sent(directory: Path, protocol: int) -> Sent:
    """From the server's side of the link, and the server's qlog."""
    datagrams = check(directory / "sim" / "trace_node_right.pcap", protocol).datagrams
    times, sizes = datagrams.time[datagrams.from_server], datagrams.size[datagrams.from_server]
    times = times - times[0]
    grid = np.arange(0, times[-1] + STEP, STEP)
    so_far = np.concatenate([[0], np.cumsum(sizes)])[np.searchsorted(times, grid, side="right")]
    windows, words = _from_qlog(sorted((directory / "server" / "qlog").glob("*")))
    return Sent(float(times[-1]), so_far.astype(float), windows, words)


def _from_qlog(paths: Sequence[Path]) -> tuple[tuple[float, ...], tuple[str, ...]]:
    for path in sorted(paths, key=lambda each: -each.stat().st_size)[:1]:
        try:
            events = qlog.read(path)
        except ValueError:
            continue
        windows = [value for event in events for key in ("congestion_window", "cwnd")
                   if isinstance(value := event.data.get(key), int | float)]  # fmt: skip
        return tuple(_reductions(windows)), tuple(dict.fromkeys(_words(events)))
    return (), ()


def _reductions(windows: Sequence[float]) -> Iterator[float]:
    for before, after in pairwise(windows):
        if before and after < REDUCTION * before:
            yield after / before


def _words(events: Sequence[qlog.Event]) -> Iterator[str]:
    for event in events:
        for key in ("congestion_control", "congestion_algorithm", "cc_algorithm", "cc_algo", "algorithm"):
            if isinstance(event.data.get(key), str):
                yield event.data[key]
        if event.name.endswith(":congestion_state_updated") and isinstance(event.data.get("new"), str):
            yield event.data["new"]


# ---- the measurement ------------------------------------------------------------------------


def measure(implementation: Implementation, folder: Path) -> None:
    """Two campaigns of all variants of one implementation; waits for whoever else uses the engine."""
    for name in CAMPAIGNS:
        client = TCP_CLIENT if implementation.protocols == (Protocol.TCP,) else CLIENT
        words = ["run", "-s", *names_of(implementation), "-c", client, "-t", "bench/variants.yaml"]
        words += ["-l", str(folder / name), "--images", "local", "--skip-compliance-check"]
        deadline = time.monotonic() + PATIENCE
        command = [sys.executable, "run.py", *words]
        while (status := subprocess.run(command, cwd=ROOT, stdout=sys.stderr, check=False).returncode) == BUSY:
            if time.monotonic() > deadline:
                sys.exit("variants: the engine was busy all the time")
            time.sleep(5)
        if not (folder / name / "journal.jsonl").exists():
            sys.exit(status)


def runs_of(folder: Path) -> dict[str, list[Sent]]:
    """By name of the variant; those of which both runs succeeded."""
    found: dict[str, list[Sent]] = {}
    for campaign in CAMPAIGNS if folder.exists() else ():
        for result in load(folder / campaign).result_set.results:
            if result.verdict.outcome is Outcome.SUCCEEDED:
                pair = f"{result.server}_{result.client}".replace(":", "+")
                protocol = TCP if result.protocol is Protocol.TCP else UDP
                found.setdefault(result.server, []).append(sent(folder / campaign / pair / CASE / "1", protocol))
    return {name: runs for name, runs in found.items() if len(runs) == len(CAMPAIGNS)}


def package_of(name: str) -> str:
    """``picoquic:bbr`` -> ``picoquic``."""
    return name.partition(":")[0]


def table(found: Mapping[str, Sequence[Sent]]) -> tuple[str, bool]:
    """As Markdown; and whether every variant takes effect."""
    rows, all_shown = [], True
    for package in dict.fromkeys(map(package_of, found)):
        family = {name: [run.bytes for run in runs] for name, runs in found.items() if package_of(name) == package}
        for effect in effects(family):
            runs = found[effect.name]
            kept = [share for run in runs for share in run.windows]
            sibling = effect.nearest.partition(":")[2]
            told = "yes" if effect.shown else f"not told from {sibling}"
            if ":" in effect.name:
                all_shown &= effect.shown
            else:
                told = "differs from all" if effect.shown else f"default: like {sibling}"
            rows.append(
                [
                    effect.name,
                    " / ".join(f"{run.duration:.2f} s" for run in runs),
                    f"{100 * effect.chance:.1f} %",
                    f"{100 * effect.distance:.1f} %, {sibling}",
                    f"{median(kept):.2f}" if kept else "",
                    ", ".join(runs[0].words[:6]),
                    told,
                ]
            )
    header = ["variant", "sending took", "from itself", "from nearest sibling", "kept", "qlog", "takes effect"]
    return draw(header, rows, markdown=True), all_shown


def main() -> int:
    """Exit status: 0 all variants take effect, 1 some did not or could not be measured."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="implementations; by default all that have variants of their server")
    parser.add_argument("--folder", type=Path, default=ROOT / "build" / "variants", help="where campaigns are kept")
    parser.add_argument("--again", action="store_true", help="only look at the campaigns that are there")
    options = parser.parse_args()
    known = inventory.load_implementations(ROOT / "implementations.json")
    chosen = [each for each in known.values() if names_of(each) and (not options.names or each.name in options.names)]
    found: dict[str, list[Sent]] = {}
    for implementation in chosen:
        folder = options.folder.absolute() / implementation.name
        if not options.again:
            measure(implementation, folder)
        found |= runs_of(folder)
    text, all_shown = table(found)
    print(text)
    if missing := [name for each in chosen for name in names_of(each) if name not in found]:
        print(f"\nnot measured: {', '.join(missing)}")
    return 0 if all_shown and not missing else 1


def names_of(implementation: Implementation) -> list[str]:
    """Those variants that can be servers and, if there are any, the implementation itself."""
    own = [f"{implementation.name}:{variant.name}" for variant in implementation.variants if variant.server]
    return [implementation.name, *own] if own else []


if __name__ == "__main__":
    sys.exit(main())
