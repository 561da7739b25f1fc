"""Checks that variants take effect: compares each server with its siblings and itself, over a link that loses once.

Run it with `make bench-variants`.
All runs lose the same packet. Two variants are told apart by what a server has sent by when, if that differs by more
than chance does, that is by more than two runs of one variant differ; or by its qlog: by the share of the congestion
window that it keeps after a loss, or by words for its congestion control that one of the two uses in all of its runs,
the other in none.
"""
# ruff: noqa: T201 - a script

import argparse
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from statistics import median

import numpy as np

from bench.script import ROOT
from quicsat.config import loader
from quicsat.model.arrays import Floats
from quicsat.model.implementation import Implementation, Protocol
from quicsat.model.outcomes import Outcome
from quicsat.report.drawing import draw
from quicsat.results.store import load
from quicsat.traces import qlog
from quicsat.traces.congestion import WINDOWS
from quicsat.traces.network import TCP, UDP
from quicsat.traces.pcap import check

CLIENT, TCP_CLIENT = "quic-go", "curl"
OTHER_CLIENTS = {"noq": "noq"}
"""Of implementations with variants that quic-go's client ignores: it does not know the extension for ACK frequency."""
CAMPAIGNS = ("first", "again")
PATIENCE = "15 min"
STEP = 0.05
"""Seconds between two points at which what was sent is compared."""
TIMES_CHANCE, LEAST = 2.0, 0.01
"""A variant takes effect if it differs from its siblings so many times as much as from itself, and at least so much."""
REDUCTION = 0.9
"""A window that falls below this share of itself has been reduced."""
KEPT_APART = 0.08
"""Shares that are kept of windows tell two variants apart if so much lies between those of their runs, and not less
than between two runs of one of them."""
SPEAKER = re.compile(rb'"message": ?"([A-Za-z]+): ')
"""Part of a stack that says something in its qlog, as picoquic's "Prague: ..."."""
OF_SECOND_CONNECTIONS = frozenset({"picoquic:bdp"})
"""Variants that change only connections that resume a session; a run here has one connection."""
WIRE, KEPT, WORDS = "wire", "kept", "words"
"""By what two variants are told apart; the last two are the qlog's."""


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
    """What the qlog says of the congestion control in words; numbers of states depend too much on chance."""

    @property
    def kept(self) -> float | None:
        """Share of the window that is kept when it is reduced; None if no reduction is known."""
        return median(self.windows) if self.windows else None


@dataclass(frozen=True)
class Effect:
    """What makes one variant another one than its siblings."""

    name: str
    chance: float
    """Distance between what its two runs had sent."""
    gaps: Mapping[str, float]
    """The same to each sibling."""
    told_by: Mapping[str, str]
    """By what it is told from each sibling; empty if by nothing."""

    @property
    def nearest(self) -> str:
        """The sibling that sent most like it."""
        return min(self.gaps, key=lambda other: self.gaps[other])

    @property
    def alike(self) -> tuple[str, ...]:
        """Siblings from which it is not told."""
        return tuple(other for other, by in self.told_by.items() if not by)


def distance(one: Floats, other: Floats) -> float:
    """Mean difference between what two runs had sent by the same time, as a share of all; 0 to 1."""
    length = max(len(one), len(other))
    full = [np.pad(each, (0, length - len(each)), mode="edge") for each in (one, other)]
    return float(np.mean(np.abs(full[0] - full[1])) / max(full[0][-1], full[1][-1]))


def effects(runs: Mapping[str, Sequence[Sent]]) -> list[Effect]:
    """For each name of one implementation; ``runs`` has the two of each. Siblings are its variants, by their colon."""
    chance = {name: distance(*(run.bytes for run in pair)) for name, pair in runs.items()}
    found = []
    for name, own in runs.items():
        siblings = {other: theirs for other, theirs in runs.items() if other != name and ":" in other}
        gaps = {
            other: min(distance(one.bytes, another.bytes) for one in own for another in theirs)
            for other, theirs in siblings.items()
        }
        told_by = {
            other: WIRE
            if gaps[other] > max(LEAST, TIMES_CHANCE * max(chance[name], chance[other]))
            else told_by_qlog(own, theirs)
            for other, theirs in siblings.items()
        }
        if siblings:
            found.append(Effect(name, chance[name], gaps, told_by))
    return found


def told_by_qlog(own: Sequence[Sent], theirs: Sequence[Sent]) -> str:
    """By what their qlogs tell the runs of two variants apart; empty if by nothing."""
    one, other = ([run.kept for run in runs if run.kept is not None] for runs in (own, theirs))
    if sorted((len(one), len(other))) == [0, len(own)]:
        return KEPT
    if len(one) == len(own) and len(other) == len(theirs):
        chance = max(max(kept) - min(kept) for kept in (one, other))
        if max(min(one) - max(other), min(other) - max(one)) >= max(KEPT_APART, chance):
            return KEPT
    for some, others in ((own, theirs), (theirs, own)):
        said_by_all = set(some[0].words).intersection(*(run.words for run in some))
        if said_by_all.difference(*(run.words for run in others)):
            return WORDS
    return ""


# ---- what a run left ------------------------------------------------------------------------


def sent(directory: Path, protocol: int) -> Sent:
    """From the server's side of the link, and the server's qlog."""
    datagrams = check(directory / "sim" / "trace_node_right.pcap", protocol).datagrams
    times, sizes = datagrams.time[datagrams.from_server], datagrams.size[datagrams.from_server]
    times = times - times[0]
    grid = np.arange(0, times[-1] + STEP, STEP)
    so_far = np.concatenate([[0], np.cumsum(sizes)])[np.searchsorted(times, grid, side="right")]
    windows, words = read_qlog(sorted((directory / "server" / "qlog").glob("*")))
    return Sent(float(times[-1]), so_far.astype(float), windows, words)


def read_qlog(paths: Sequence[Path]) -> tuple[tuple[float, ...], tuple[str, ...]]:
    """What the largest qlog tells: each window after a reduction over that before, and all words, each once."""
    for path in sorted(paths, key=lambda each: -each.stat().st_size)[:1]:
        try:
            events = qlog.read(path).events
        except ValueError:
            continue
        windows = [value for event in events for key in WINDOWS
                   if (value := qlog.number(event.data.get(key))) is not None]  # fmt: skip
        words = [*_words(events), *(each.decode() for each in SPEAKER.findall(path.read_bytes()))]
        return tuple(_reductions(windows)), tuple(word for word in dict.fromkeys(words) if re.search("[a-z]", word))
    return (), ()


def _reductions(windows: Sequence[float]) -> Iterator[float]:
    for before, after in pairwise(windows):
        if before and after < REDUCTION * before:
            yield after / before


def _words(events: Sequence[qlog.QlogEvent]) -> Iterator[str]:
    for event in events:
        for key in ("congestion_control", "congestion_algorithm", "cc_algorithm", "cc_algo", "algorithm"):
            if isinstance(event.data.get(key), str):
                yield event.data[key]
        if event.name == "congestion_state_updated" and isinstance(event.data.get("new"), str):
            yield event.data["new"]


# ---- the measurement ------------------------------------------------------------------------


def measure(implementation: Implementation, folder: Path) -> None:
    """Two campaigns of all variants of one implementation; waits for whoever else uses the engine."""
    for name in CAMPAIGNS:
        usual = TCP_CLIENT if implementation.protocols == (Protocol.TCP,) else CLIENT
        client = OTHER_CLIENTS.get(implementation.name, usual)
        words = ["run", "-s", *names_of(implementation), "-c", client, "-t", "bench/variants.yaml"]
        words += ["-l", str(folder / name), "--images", "local", "--skip-compliance-check"]
        command = [sys.executable, "run.py", *words, "--wait", PATIENCE]
        status = subprocess.run(command, cwd=ROOT, stdout=sys.stderr, check=False).returncode
        if not (folder / name / "journal.jsonl").exists():
            sys.exit(status)


def runs_of(folder: Path) -> dict[str, list[Sent]]:
    """By name of the variant; those of which both runs succeeded."""
    found: dict[str, list[Sent]] = {}
    for campaign in CAMPAIGNS if folder.exists() else ():
        for result in load(folder / campaign).result_set.results:
            if result.verdict.outcome is Outcome.SUCCEEDED:
                protocol = TCP if result.protocol is Protocol.TCP else UDP
                found.setdefault(result.server, []).append(sent(folder / campaign / result.key.path, protocol))
    return {name: runs for name, runs in found.items() if len(runs) == len(CAMPAIGNS)}


def package_of(name: str) -> str:
    """``picoquic:bbr`` -> ``picoquic``."""
    return name.partition(":")[0]


def variant_of(name: str) -> str:
    """``picoquic:bbr`` -> ``bbr``."""
    return name.partition(":")[2]


def _names(names: Iterable[str]) -> str:
    return ", ".join(map(variant_of, names))


def table(found: Mapping[str, Sequence[Sent]]) -> tuple[str, bool]:
    """As Markdown; and whether every variant takes effect."""
    rows, all_shown = [], True
    for package in dict.fromkeys(map(package_of, found)):
        for effect in effects({name: runs for name, runs in found.items() if package_of(name) == package}):
            runs = found[effect.name]
            if ":" in effect.name:
                all_shown &= not effect.alike
            rows.append(
                [
                    effect.name,
                    " / ".join(f"{run.duration:.2f} s" for run in runs),
                    f"{100 * effect.chance:.1f} %",
                    f"{100 * effect.gaps[effect.nearest]:.1f} %, {variant_of(effect.nearest)}",
                    " / ".join("" if run.kept is None else f"{run.kept:.2f}" for run in runs).strip(" /"),
                    ", ".join(runs[0].words[:6]),
                    *(
                        _names(other for other, by in effect.told_by.items() if by == way)
                        for way in (WIRE, KEPT, WORDS)
                    ),
                    _names(effect.alike),
                ]
            )
    header = ["variant", "sending took", "from itself", "from nearest sibling", "kept", "qlog's words"]
    header += ["told on the wire from", "by what is kept", "by words", "not told"]
    return draw(header, rows, markdown=True), all_shown


def main() -> int:
    """Exit status: 0 all variants take effect, 1 some did not or could not be measured."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="implementations; by default all that have variants of their server")
    parser.add_argument("--folder", type=Path, default=ROOT / "build" / "variants", help="where campaigns are kept")
    parser.add_argument("--again", action="store_true", help="only look at the campaigns that are there")
    options = parser.parse_args()
    known = loader.load_implementations(ROOT / "implementations.json")
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
    variants = [f"{implementation.name}:{variant.name}" for variant in implementation.variants if variant.server]
    own = [name for name in variants if name not in OF_SECOND_CONNECTIONS]
    return [implementation.name, *own] if own else []


if __name__ == "__main__":
    sys.exit(main())
