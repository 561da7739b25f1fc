"""Makes room below the results: traces go before logs, logs before results, the oldest first."""

from __future__ import annotations

import fcntl
import os
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import IntEnum
from pathlib import Path

from interop.errors import MachineError, UserError
from interop.store import JOURNAL, load
from interop.units import byte_size

PINNED = "pinned"
"""A file of this name in the directory of a campaign keeps all of it."""
TRACES, KEPT = (".pcap", ".pcapng"), ("journal.jsonl", "result.json", "series.parquet", "link.json", "keys.log")
_NO_MORE = "results go by --keep alone, and what is pinned or in use stays."
OUTPUT = "output.txt"
"""Of a run; short, and the first that is asked for when it failed."""


class Stage(IntEnum):
    """What can be removed of a campaign, in this order."""

    TRACES = 0
    LOGS = 1
    """qlogs, and all else that endpoints wrote."""
    RESULTS = 2
    """The campaign as a whole."""


@dataclass(frozen=True)
class Stored:
    """A campaign on disk."""

    directory: Path
    started: datetime
    sizes: dict[Stage, int]
    """Bytes of each stage alone; of a file that several campaigns share, for they were merged, each has its part."""
    protected: str = ""
    """Why nothing of it may be removed; empty if it may."""
    finished: bool = True


@dataclass(frozen=True)
class Rules:
    """What may stay; None for whatever there is."""

    traces: timedelta | None = None
    logs: timedelta | None = None
    """Ages from which traces and logs go."""
    keep: int | None = None
    """Newest campaigns whose results stay; without it all do."""
    most_bytes: int | None = None
    """All campaigns together."""
    free_bytes: int | None = None
    """To be free on the disk; traces and logs go until it is."""


@dataclass(frozen=True)
class Removal:
    """What is to go."""

    stored: Stored
    stage: Stage

    @property
    def size(self) -> int:
        """Bytes."""
        if self.stage is Stage.RESULTS:
            return sum(self.stored.sizes.values())
        return self.stored.sizes[self.stage]


def choose(campaigns: Sequence[Stored], rules: Rules, now: datetime, free: int) -> list[Removal]:
    """What goes by ``rules`` when ``free`` bytes are free; pure.

    Results go by number alone, never for want of room, and never those of the newest campaign that is finished.
    """
    ordered = sorted(campaigns, key=lambda each: each.started)
    open_to = [each for each in ordered if not each.protected]
    newest = next((each for each in reversed(ordered) if each.finished), None)
    whole = ordered[: len(ordered) - rules.keep] if rules.keep is not None else []
    chosen = {each.directory: Removal(each, Stage.RESULTS) for each in whole if each in open_to and each is not newest}
    parts: list[Removal] = []
    for stage, age in ((Stage.TRACES, rules.traces), (Stage.LOGS, rules.logs)):
        parts += [Removal(each, stage) for each in open_to if age is not None and now - each.started >= age]
    removals = [*chosen.values(), *(each for each in parts if each.stored.directory not in chosen and each.size)]
    total = sum(sum(each.sizes.values()) for each in campaigns)
    for stage in (Stage.TRACES, Stage.LOGS):
        for each in open_to:
            gone = sum(removal.size for removal in removals)
            full = rules.most_bytes is not None and total - gone > rules.most_bytes
            tight = rules.free_bytes is not None and free + gone < rules.free_bytes
            further = Removal(each, stage)
            if (full or tight) and further.size and further not in removals and each.directory not in chosen:
                removals.append(further)
    return removals


def missed(removals: Sequence[Removal], campaigns: Sequence[Stored], rules: Rules, free: int) -> str:
    """Which room there will not be, ``free`` bytes being free before the removals; empty if there will be enough."""
    gone = sum(each.size for each in removals)
    rest = sum(sum(each.sizes.values()) for each in campaigns) - gone
    if rules.free_bytes is not None and free + gone < rules.free_bytes:
        return f"Only {byte_size(free + gone)} are free then, not {byte_size(rules.free_bytes)}; {_NO_MORE}"
    if rules.most_bytes is not None and rest > rules.most_bytes:
        return f"{byte_size(rest)} stay, more than {byte_size(rules.most_bytes)}; {_NO_MORE}"
    return ""


# ---- the disk -------------------------------------------------------------------------------


def find(root: Path) -> list[Stored]:
    """The campaigns below ``root``; what is none is not looked at."""
    places = (each for each in root.iterdir() if not each.is_symlink()) if root.is_dir() else ()
    return [_stored(place) for place in sorted(places) if (place / JOURNAL).is_file()]


def _stored(place: Path) -> Stored:
    sizes = dict.fromkeys(Stage, 0)
    for path, stage in _files(place):
        status = path.lstat()
        sizes[stage] += status.st_size // status.st_nlink
    protected = "pinned" if (place / PINNED).exists() else "in use" if _in_use(place) else ""
    try:
        results = load(place).result_set
        started = datetime.fromisoformat(results.manifest.started)
        finished = results.finished is not None
    except (UserError, ValueError):
        started = datetime.fromtimestamp((place / JOURNAL).stat().st_mtime, UTC)
        protected, finished = protected or "its journal cannot be read", False
    return Stored(place, started if started.tzinfo else started.replace(tzinfo=UTC), sizes, protected, finished)


def _in_use(place: Path) -> bool:
    """Whether a campaign writes to it now."""
    descriptor = os.open(place / JOURNAL, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(descriptor)
    return False


def _files(place: Path) -> Iterator[tuple[Path, Stage]]:
    """Files of a campaign, links among them, never what links point to."""
    for folder, _, names in os.walk(place):
        for name in names:
            path = Path(folder, name)
            inside = len(path.relative_to(place).parts) > 3  # pair/test case/repetition/…
            if name.endswith(TRACES):
                yield path, Stage.TRACES
            elif inside and name not in KEPT and not (name == OUTPUT and len(path.relative_to(place).parts) == 4):
                yield path, Stage.LOGS
            else:
                yield path, Stage.RESULTS


def carry_out(removals: Sequence[Removal]) -> None:
    """Remove it; raises :class:`MachineError` if something cannot be."""
    for removal in removals:
        place = removal.stored.directory
        try:
            if removal.stage is Stage.RESULTS:
                shutil.rmtree(place)
                continue
            for path in [path for path, stage in _files(place) if stage is removal.stage]:
                path.unlink(missing_ok=True)
        except OSError as error:
            raise MachineError(f"{place}: cannot be removed: {error.strerror}. Look who owns it.") from error


def tell(removals: Sequence[Removal], campaigns: Sequence[Stored], *, done: bool) -> str:
    """A line for each removal, and the sum."""
    words = {Stage.TRACES: "traces", Stage.LOGS: "logs", Stage.RESULTS: "all of it"}
    lines = [f"{each.stored.directory}: {words[each.stage]}, {byte_size(each.size)}" for each in removals]
    lines += [f"{each.directory}: stays, {each.protected}" for each in campaigns if each.protected]
    total = byte_size(sum(each.size for each in removals))
    lines.append(f"{total} removed" if done else f"{total} would be removed; add --yes to do so")
    return "\n".join(lines)
