"""The data set of the report: the result.json of each campaign, compressed, and their checksums."""

from __future__ import annotations

import gzip
import hashlib
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from enum import StrEnum
from functools import cache
from pathlib import Path

from interop.model.outcomes import Outcome
from interop.model.results import ResultSet, RunResult, Versions
from interop.model.test_case import TestCase
from interop.report.table import Column, Table, Unit
from interop.results.document import document, parse_document
from interop.results.store import JOURNAL, load
from scripts.paper.lines import rendered
from scripts.paper.words import counted, listed, named_campaigns

DATA, CHECKSUMS = "data", "SHA256SUMS"


class Part(StrEnum):
    """Parts of `make paper` that the report uses (bench/paper.py)."""

    MATRIX = "matrix"
    VARIANTS = "variants"
    WINDOWS = "windows"
    QUEUES = "queues"
    SWEEPS = "sweeps"
    LIMITS = "limits"
    REAL = "real"
    REPEAT = "repeat"
    ANOTHER_MACHINE = "another-machine"
    """The part repeat on another machine."""
    SPREAD = "spread"
    DELAYS = "delays"
    LARGE_WINDOWS = "quic-go-windows"
    """Not of `make paper`: a client of quic-go that was built with larger windows."""
    COUNTER = "msquic-counter"
    """Not of `make paper`: a server of msquic whose counter of acknowledged bytes does not underflow."""
    QLOG = "quic-go-qlog"
    """Not of `make paper`: picoquic with two clients, with qlogs."""
    START = "quic-go-start"
    """Not of `make paper`: quic-go with three clients, with qlogs, on another machine."""


TITLE = "## Data set"
ELSEWHERE = (Part.ANOTHER_MACHINE, Part.START)
"""Campaigns of another machine than all others."""
SUFFIX = ".json.gz"


def collect(results: Path, target: Path) -> list[Path]:
    """Write the result.json of each campaign below ``results`` that has measured something; the files."""
    target.mkdir(parents=True, exist_ok=True)
    written = []
    for journal in sorted(results.glob(f"*/{JOURNAL}")):
        found = load(journal.parent).result_set
        if found.results:
            path = target / f"{journal.parent.name}{SUFFIX}"
            path.write_bytes(gzip.compress(document(found), mtime=0))
            written.append(path)
    return written


def write_checksums(data: Path) -> None:
    """The SHA-256 checksums of all files of the data set."""
    lines = (f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.relative_to(data)}\n" for path in files(data))
    (data / CHECKSUMS).write_text("".join(lines), encoding="ascii")


def files(data: Path) -> list[Path]:
    """All files of the data set but the checksums."""
    return sorted(path for path in data.rglob("*") if path.is_file() and path.name != CHECKSUMS)


def stored(data: Path) -> list[Path]:
    """Files of the data set, by campaign and seed."""
    return sorted(data.glob(f"*{SUFFIX}"), key=lambda path: (_campaign(path), _seed(path)))


def _campaign(path: Path) -> str:
    return re.sub(r"-\d+$", "", path.name.removesuffix(SUFFIX))


def _seed(path: Path) -> int:
    found = re.search(r"-(\d+)$", path.name.removesuffix(SUFFIX))
    return int(found[1]) if found else 0


def read(data: Path) -> dict[str, ResultSet]:
    """Parts of `make paper`: campaigns of other seeds are repetitions, and campaigns of other pairs are one part."""
    found: dict[str, list[ResultSet]] = {}
    for path in stored(data):
        found.setdefault(_campaign(path), []).append(_parsed(path))
    parts: dict[str, list[ResultSet]] = {}
    for name, campaigns in found.items():
        parts.setdefault(_part(name), []).append(combined(campaigns))
    return {part: joined(campaigns) for part, campaigns in parts.items()}


def single_campaigns(data: Path) -> list[tuple[str, ResultSet]]:
    """Part and results of each stored campaign, each with its own manifest."""
    return [(_part(_campaign(path)), _parsed(path)) for path in stored(data)]


def _part(campaign: str) -> str:
    return next((part for part in Part if campaign.startswith(part)), campaign)


def by_seed(data: Path, part: str) -> dict[int, ResultSet]:
    """The campaigns of one name without its seed, each with its own manifest, by their seed."""
    return {_seed(path): _parsed(path) for path in stored(data) if _campaign(path) == part}


@cache
def _parsed(path: Path) -> ResultSet:
    return parse_document(path, gzip.decompress(path.read_bytes())).result_set


def combined(campaigns: Sequence[ResultSet]) -> ResultSet:
    """Campaigns of the same pairs with other seeds, as one; the first one's repetitions and links come first."""
    manifest, before = campaigns[0].manifest, 0
    cases = dict[str, TestCase]()
    results, earlier = list[RunResult](), list[RunResult]()
    for campaign in campaigns:
        if campaign.manifest.time != manifest.time:
            raise ValueError(f"{manifest.id} and {campaign.manifest.id} have different clocks.")
        results += [replace(each, repetition=each.repetition + before) for each in campaign.results]
        earlier += [replace(each, repetition=each.repetition + before) for each in campaign.earlier]
        before += max((case.repetitions for case in campaign.manifest.test_cases), default=0)
        for case in campaign.manifest.test_cases:
            known = cases[case.name].repetitions if case.name in cases else 0
            cases[case.name] = replace(cases.get(case.name, case), repetitions=known + case.repetitions)
    planned = sum(campaign.manifest.planned_runs for campaign in campaigns)
    versions = _versions(campaigns)
    manifest = replace(manifest, test_cases=tuple(cases.values()), planned_runs=planned, versions=versions)
    return replace(campaigns[0], manifest=manifest, results=tuple(results), earlier=tuple(earlier))


def _versions(campaigns: Sequence[ResultSet]) -> Versions | None:
    """Those of the first campaign that stored them, with all versions of quicsat."""
    found = [versions for campaign in campaigns if (versions := campaign.manifest.versions)]
    if not found:
        return None
    quicsat = listed(dict.fromkeys(each.quicsat for each in found))
    if without := [campaign.manifest.seed for campaign in campaigns if not campaign.manifest.versions]:
        quicsat += (
            f" (the {'campaign' if len(without) == 1 else 'campaigns'} with {seeds_in_words(without)} did not store "
            f"{'its' if len(without) == 1 else 'their'} version)"
        )
    return replace(found[0], quicsat=quicsat)


def seeds_in_words(seeds: Sequence[int]) -> str:
    """``seed 1``; ``seeds 1 and 2``."""
    return f"{'seed' if len(seeds) == 1 else 'seeds'} {listed(map(str, seeds))}"


def joined(campaigns: Sequence[ResultSet]) -> ResultSet:
    """Campaigns of other pairs over the same links, as one."""
    manifests = [each.manifest for each in campaigns]
    manifest = replace(
        manifests[0],
        servers=tuple(dict.fromkeys(name for each in manifests for name in each.servers)),
        clients=tuple(dict.fromkeys(name for each in manifests for name in each.clients)),
        implementations=tuple({each.name: each for one in manifests for each in one.implementations}.values()),
        images={name: image for each in manifests for name, image in each.images.items()},
        planned_runs=sum(each.planned_runs for each in manifests),
    )
    return replace(
        campaigns[0],
        manifest=manifest,
        results=tuple(run for each in campaigns for run in each.results),
        earlier=tuple(run for each in campaigns for run in each.earlier),
    )


def size_of(data: Path) -> str:
    """Number and size of the files of the data set."""
    found = files(data)
    return f"{counted(len(found), 'file')}, {sum(f.stat().st_size for f in found) / 1e6:.1f} MB"


def data_sheet(
    parts: Mapping[str, ResultSet], size: str, images: Iterable[str] = (), series: Sequence[str] = ()
) -> list[str]:
    """What the data set holds, where it comes from, and what it must not be used for.

    ``images``: an item about the images of virtual time, or nothing. ``series``: the runs with stored series.
    """
    kept = ", and only the series of the runs named below" if series else ""
    return [
        TITLE,
        "",
        (
            f"[`docs/paper/data`]({DATA}/{CHECKSUMS}) contains the `result.json` of each campaign (compressed with "
            f"gzip), the series of some runs, and the SHA-256 checksums of these files ({size}). The [result schema]"
            "(../reference/result.md) describes all fields of the results, and `interop/traces/series.py` describes "
            "those of the series."
        ),
        "",
        *rendered(campaigns(parts)),
        (
            f"- **Origin:** `make paper` on a virtual machine with two cores{_others(parts)} Each result names the "
            "kernel, the Docker engine and the images; each campaign names the versions, sources and patches of the "
            "implementations."
        ),
        *images,
        (
            "- **Processing:** quicsat computed all measurements and the series from the packet traces and logs of "
            "each run. The data set contains these results unchanged, but no traces, logs or "
            f"qlogs{kept}. {_of_series(parts, series)}With the same seeds and images, runs in virtual time reproduce "
            "most of these files ([Virtual time](../guide/virtual-time.md))."
        ),
        (
            "- **Not suitable for:** comparing the CPU efficiency of implementations. In virtual time, a system call "
            "takes a fixed time."
        ),
        (
            "- **Website, PDF and archive:** `make docs` builds the results website of the matrix in "
            "`build/docs/sample`, this page as `build/docs/paper/report.pdf`, and an archive of the data set with this "
            "data sheet and the licence as `build/docs/paper/data-set.tar.gz`."
        ),
        "- **Licence:** [CC BY 4.0](https://creativecommons.org/licenses/by/4.0/) for the data and the figures.",
    ]


def _of_series(parts: Mapping[str, ResultSet], series: Sequence[str]) -> str:
    """Which numbers and figures come from the stored series; empty without series."""
    if not series:
        return ""
    explained = Part.WINDOWS in parts
    where = "[Why picoquic is slow with quic-go](#why-picoquic-is-slow-with-quic-go) and " if explained else ""
    if Part.START in parts:
        where = f"[Why quic-go is slow with kwik and lsquic](#why-quic-go-is-slow-with-kwik-and-lsquic), {where}"
    return (
        f"The figures{' and numbers' if explained else ''} of single packets in {where}[Packets of single runs]"
        f"(#packets-of-single-runs) come from the stored series ({'; '.join(series)}). They cannot be checked against "
        "the traces. "
    )


def campaigns(parts: Mapping[str, ResultSet]) -> Table:
    """Pairs, attempts and runs of each part; their numbers add up."""
    columns = (
        Column("campaigns"), Column("pairs", Unit.COUNT), Column("planned", Unit.COUNT), Column("attempts", Unit.COUNT),
        Column("repeated attempts", Unit.COUNT), Column("runs", Unit.COUNT), Column("succeeded", Unit.COUNT),
        Column("timed out", Unit.COUNT), Column("failed", Unit.COUNT), Column("other", Unit.COUNT),
    )  # fmt: skip
    rows: list[tuple[str | int | None, ...]] = [
        (part, len({(run.server, run.client) for run in each.results}), each.manifest.planned_runs, *_counts(each))
        for part, each in parts.items()
    ]
    totals = (sum(int(row[place] or 0) for row in rows) for place in range(2, len(columns)))
    notes = (
        (
            "A run is a pair over a link with one seed; a pair has several runs. Runs = attempts − repeated attempts = "
            "succeeded + timed out + failed + other."
        ),
        _clocks(parts),
    )
    return Table("data", "Campaigns", columns, (*rows, ("all", None, *totals)), notes)


def _counts(results: ResultSet) -> tuple[int, ...]:
    outcomes = Counter(run.verdict.outcome for run in results.results)
    counted = [outcomes[outcome] for outcome in (Outcome.SUCCEEDED, Outcome.TIMEOUT, Outcome.FAILED)]
    runs, again = len(results.results), len(results.earlier)
    return runs + again, again, runs, *counted, runs - sum(counted)


def _clocks(parts: Mapping[str, ResultSet]) -> str:
    """``All campaigns ran in virtual time.``; ``The campaign `real` ran in real time; all others ran in …``."""
    found: dict[str, list[str]] = {}
    for part, each in parts.items():
        found.setdefault(each.manifest.time, []).append(part)
    if len(found) == 1:
        return f"All campaigns ran in {next(iter(found))}."
    *few, (clock, names) = sorted(found.items(), key=lambda each: len(each[1]))
    told = "; the ".join(f"{named_campaigns(own)} ran in {other}" for other, own in few)
    return f"The {told}; {'all others' if len(names) > 1 else f'the {named_campaigns(names)}'} ran in {clock}."


def others(parts: Iterable[str]) -> list[str]:
    """Campaigns that `make paper` does not have."""
    return [part for part in (Part.LARGE_WINDOWS, Part.COUNTER, Part.QLOG, Part.START) if part in parts]


def _others(parts: Mapping[str, ResultSet]) -> str:
    """Campaigns that `make paper` does not have, and those of another machine."""
    here = [name for name in others(parts) if name != Part.START]
    told = f", except for the {named_campaigns(here)}, which we started there with `./run.py run`" if here else ""
    there = list(elsewhere(parts))
    word = "campaign" if len(there) == 1 else "campaigns"
    moved = f" The {word} {listed(there)} ran on another virtual machine with two cores." if there else ""
    return f"{told}.{moved}"


def elsewhere(parts: Mapping[str, ResultSet]) -> Iterator[str]:
    """Campaigns, seeds of them, or single runs, whose processor no run of the matrix has."""
    usual = {processor_of(run) for run in parts[Part.MATRIX].results} if Part.MATRIX in parts else set()
    for part, results in parts.items():
        moved = [run for run in results.results if usual and processor_of(run) not in usual]
        seeds = {number_of_seed(results, run) for run in moved}
        if moved and len(moved) == len(results.results):
            yield f"`{part}`"
        elif moved and len(moved) == sum(number_of_seed(results, run) in seeds for run in results.results):
            yield f"`{part}` with {seeds_in_words(sorted(seeds))}"
        elif moved:
            yield f"`{part}` ({len(moved)} of {counted(len(results.results), 'run')})"


def seeds_on_another_machine(results: ResultSet) -> list[int]:
    """The seeds of a campaign whose runs have another processor than those of its first seed, if both are known."""
    by_seed: dict[int, set[str]] = {}
    for run in results.results:
        if processor := processor_of(run):
            by_seed.setdefault(number_of_seed(results, run), set()).add(processor)
    usual = by_seed[min(by_seed)] if by_seed else set()
    return sorted(seed for seed, found in by_seed.items() if not found & usual)


WITH_SEEDS = (Part.QUEUES, Part.VARIANTS, Part.SWEEPS, Part.DELAYS, Part.LIMITS, Part.WINDOWS)
"""Parts of `make paper` in virtual time whose seeds the report does not show in a table."""


def fewer_seeds(campaigns: Iterable[tuple[str, ResultSet]], planned: Collection[int]) -> str:
    """The parts ``WITH_SEEDS`` that lack planned seeds, and the seeds that they have, as a sentence; or nothing.

    ``campaigns``: part and results, each with its own manifest.
    """
    seeds: dict[str, set[int]] = {}
    for part, results in campaigns:
        seeds.setdefault(part, set()).add(results.manifest.seed)
    groups: dict[tuple[int, ...], list[str]] = {}
    for part in WITH_SEEDS:
        if (found := seeds.get(part)) and found < {*planned}:
            groups.setdefault(tuple(sorted(found)), []).append(part)
    told = [
        f"the {named_campaigns(names)} {'has' if len(names) == 1 else 'have'} only {seeds_in_words(numbers)}"
        for numbers, names in groups.items()
    ]
    return f"So far, {listed(told)}." if told else ""


def number_of_seed(results: ResultSet, run: RunResult) -> int:
    """The number of the seed of a run: campaigns with consecutive seeds have become repetitions of the first one."""
    return results.manifest.seed + run.repetition - 1


def processor_of(run: RunResult) -> str:
    """The processor of the machine on which a run took place; empty if it is not known."""
    return run.evidence.host.processor if run.evidence.host is not None else ""
