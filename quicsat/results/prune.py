"""Removes stored files to free disk space: traces before logs, logs before results, the oldest campaigns first."""

import fcntl
import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import IntEnum
from pathlib import Path

from quicsat.model.errors import MachineError, UserError
from quicsat.model.moments import moment
from quicsat.model.run import KEY_LOG, OUTPUT
from quicsat.model.stored_files import is_file, open_directory, open_file, resolved, status, walk
from quicsat.model.text import escaped
from quicsat.model.units import byte_size
from quicsat.model.whole_file import REMOVED, remove_directory, remove_drafts, remove_file
from quicsat.results.compression import plain_name
from quicsat.results.store import JOURNAL, campaigns_in, load

PINNED = "pinned"
"""A file of this name in the directory of a campaign keeps all of it."""
TRACES, KEPT = (".pcap", ".pcapng"), ("journal.jsonl", "result.json", "series.parquet", "link.json", KEY_LOG)
_NO_MORE = "results go by --keep alone, and what is pinned or in use stays."


class Stage(IntEnum):
    """What can be removed of a campaign, in this order."""

    TRACES = 0
    LOGS = 1
    """qlogs, and all else that endpoints wrote."""
    RESULTS = 2
    """The campaign as a whole."""


@dataclass(frozen=True)
class StoredCampaign:
    """A campaign on disk."""

    directory: Path
    started: datetime
    sizes: dict[Stage, int]
    """Bytes of each stage alone; of a file that several campaigns share, for they were merged, each has its part."""
    protected: str = ""
    """Why nothing of it may be removed; empty if it may."""
    finished: bool = True


@dataclass(frozen=True)
class RetentionPolicy:
    """What is kept; None keeps everything."""

    traces: timedelta | None = None
    logs: timedelta | None = None
    """Ages from which traces and logs are removed."""
    keep: int | None = None
    """Number of newest campaigns whose results are kept; None keeps all."""
    most_bytes: int | None = None
    """Largest size of all campaigns together, bytes."""
    free_bytes: int | None = None
    """Bytes to be free on the disk; traces and logs are removed until they are."""


@dataclass(frozen=True)
class Removal:
    """One step: a stage of a campaign that is to be removed."""

    stored: StoredCampaign
    stage: Stage

    @property
    def size(self) -> int:
        """Bytes."""
        if self.stage is Stage.RESULTS:
            return sum(self.stored.sizes.values())
        return self.stored.sizes[self.stage]


def select_removals(
    campaigns: Sequence[StoredCampaign], policy: RetentionPolicy, now: datetime, free: int
) -> list[Removal]:
    """What ``policy`` removes when ``free`` bytes are free; pure.

    Results are removed by number alone, never for lack of space, and never those of the newest finished campaign.
    """
    ordered = sorted(campaigns, key=lambda each: each.started)
    open_to = [each for each in ordered if not each.protected]
    newest = next((each for each in reversed(ordered) if each.finished), None)
    whole = ordered[: len(ordered) - policy.keep] if policy.keep is not None else []
    chosen = {each.directory: Removal(each, Stage.RESULTS) for each in whole if each in open_to and each is not newest}
    parts: list[Removal] = []
    for stage, age in ((Stage.TRACES, policy.traces), (Stage.LOGS, policy.logs)):
        parts += [Removal(each, stage) for each in open_to if age is not None and now - each.started >= age]
    removals = [*chosen.values(), *(each for each in parts if each.stored.directory not in chosen and each.size)]
    total = sum(sum(each.sizes.values()) for each in campaigns)
    for stage in (Stage.TRACES, Stage.LOGS):
        for each in open_to:
            gone = sum(removal.size for removal in removals)
            full = policy.most_bytes is not None and total - gone > policy.most_bytes
            tight = policy.free_bytes is not None and free + gone < policy.free_bytes
            further = Removal(each, stage)
            if (full or tight) and further.size and further not in removals and each.directory not in chosen:
                removals.append(further)
    return removals


def shortfall(
    removals: Sequence[Removal], campaigns: Sequence[StoredCampaign], policy: RetentionPolicy, free: int
) -> str:
    """A sentence if the removals do not free enough; empty if they do. ``free`` bytes are free before them."""
    gone = sum(each.size for each in removals)
    rest = sum(sum(each.sizes.values()) for each in campaigns) - gone
    if policy.free_bytes is not None and free + gone < policy.free_bytes:
        return f"Only {byte_size(free + gone)} are free then, not {byte_size(policy.free_bytes)}; {_NO_MORE}"
    if policy.most_bytes is not None and rest > policy.most_bytes:
        return f"{byte_size(rest)} stay, more than {byte_size(policy.most_bytes)}; {_NO_MORE}"
    return ""


# ---- the disk -------------------------------------------------------------------------------


def find_campaigns(root: Path) -> list[StoredCampaign]:
    """The campaigns below ``root``; others are ignored. What a killed call has left of one is removed."""
    with suppress(OSError), open_directory(resolved(root)) as directory:
        remove_drafts(directory, REMOVED)
    return [_stored(place) for place in campaigns_in(root) if is_file(place / JOURNAL)]


def _stored(place: Path) -> StoredCampaign:
    sizes = dict.fromkeys(Stage, 0)
    for _, found, stage in _files(place):
        sizes[stage] += found.st_size // max(found.st_nlink, 1)
    with _unused(place) as unused:
        protected = "pinned" if status(place / PINNED) is not None else "" if unused else "in use"
    try:
        results = load(place).result_set
        started, finished = moment(results.manifest.started), results.finished is not None
    except UserError:
        started, finished = None, False
    if started is None:
        state = status(place / JOURNAL)
        started = datetime.fromtimestamp(0.0 if state is None else state.st_mtime, UTC)
        protected = protected or "its journal cannot be read"
    return StoredCampaign(place, started, sizes, protected, finished)


@contextmanager
def _unused(place: Path) -> Iterator[bool]:
    """Whether no campaign writes to it; none can begin to in the block."""
    with ExitStack() as stack:
        try:
            file = stack.enter_context(open_file(place / JOURNAL))
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except OSError:
            yield False
        else:
            yield True


def _files(place: Path) -> Iterator[tuple[Path, os.stat_result, Stage]]:
    """Files of a campaign, links among them, never what links point to."""
    for path, state in walk(place):
        depth = len(path.relative_to(place).parts)  # pair/test case/repetition/…
        if path.name.endswith(TRACES):
            yield path, state, Stage.TRACES
        elif depth > 3 and path.name not in KEPT and not (depth == 4 and plain_name(path).name == OUTPUT):
            yield path, state, Stage.LOGS
        else:
            yield path, state, Stage.RESULTS


def remove(removals: Sequence[Removal]) -> list[Removal]:
    """Remove the files, and return what was removed: campaigns that began to write meanwhile stay.

    Raises :class:`MachineError` if a file cannot be removed.
    """
    done = []
    for removal in removals:
        place = removal.stored.directory
        with _unused(place) as unused:
            if unused and status(place / PINNED) is None:
                try:
                    _remove(place, removal.stage)
                except OSError as error:
                    raise MachineError(f"{place}: cannot be removed: {error.strerror}. Look who owns it.") from error
                done.append(removal)
    return done


def _remove(place: Path, stage: Stage) -> None:
    if stage is Stage.RESULTS:
        remove_directory(place)
        return
    for path in [path for path, _, found in _files(place) if found is stage]:
        remove_file(path)


def describe(removals: Sequence[Removal], campaigns: Sequence[StoredCampaign], *, done: bool) -> str:
    """A line for each removal, and the sum."""
    words = {Stage.TRACES: "traces", Stage.LOGS: "logs", Stage.RESULTS: "all of it"}
    lines = [f"{escaped(str(each.stored.directory))}: {words[each.stage]}, {byte_size(each.size)}" for each in removals]
    lines += [f"{escaped(str(each.directory))}: stays, {each.protected}" for each in campaigns if each.protected]
    total = byte_size(sum(each.size for each in removals))
    lines.append(f"{total} removed" if done else f"{total} would be removed; add --yes to do so")
    return "\n".join(lines)
