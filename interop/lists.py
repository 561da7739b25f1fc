"""What the images command shows: images that are here, what came of getting them, and what a check has found."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from interop import provenance
from interop.checkup import LARGE, Finding, outcome_of
from interop.model import Outcome, Protocol, Provenance, RunResult
from interop.stock import Got, Stocked
from interop.tables import draw
from interop.units import byte_size, mbit_per_s, seconds


def stock(stocked: Iterable[Stocked], now: datetime) -> str:
    """What images are here; ``now`` is the moment that their age is told for."""
    rows = []
    for each in stocked:
        image = each.image
        told = (
            ["", "", "", ""]
            if image is None
            else [
                image.version or "unknown",
                byte_size(image.size),
                _age(image.created, now),
                image.id.removeprefix("sha256:")[:12],
            ]
        )
        rows.append([each.name, each.source, each.state, *told, each.reference])
    header = ["implementation", "source", "state", "version", "size", "age", "digest", "reference"]
    return draw(header, rows, right=("size", "age"))


@dataclass(frozen=True)
class Told:
    """What is known of an image's origin."""

    name: str
    state: str
    """Whether the image is here, or that its Dockerfile states the rest."""
    version: str
    provenance: Provenance


def stated(name: str, state: str, labels: Mapping[str, str]) -> Told:
    """The same, from the labels that a Dockerfile states."""
    return Told(name, state, labels.get(provenance.VERSION, ""), provenance.of_labels(labels))


def sources(told: Iterable[Told], *, markdown: bool = False) -> str:
    """A row for each image: source, version, commit, patches, build type, GSO. Markdown has all, without states."""
    rows = []
    for each in told:
        origin = each.provenance
        patches = origin.patches
        rows.append(
            [
                each.name,
                *([] if markdown else [each.state]),
                origin.source or "unknown",
                each.version or "unknown",
                origin.revision[:12] or "unknown",
                "unknown" if patches is None else _patches(patches, whole=markdown),
                *([origin.changes or "unknown"] if markdown else []),
                origin.build_type or "unknown",
                origin.gso or "unknown",
            ]
        )
    header = ["implementation", "source", "version", "commit", "patches", "build type", "GSO"]
    if markdown:
        header.insert(5, "our changes")
    else:
        header.insert(1, "image")
    return draw(header, rows, markdown=markdown)


def _patches(names: Sequence[str], *, whole: bool) -> str:
    return ", ".join(names) if names and (whole or len(names) == 1) else str(len(names)) if names else "none"


def _age(created: str, now: datetime) -> str:
    """``3 d``; ``unknown`` for what is no time, or a made-up one as reproducible builds have it."""
    try:
        age = (now - datetime.fromisoformat(created)).total_seconds()
    except (ValueError, TypeError):
        return "unknown"
    for unit, size in (("d", 86400), ("h", 3600), ("min", 60)):
        if age >= size:
            return f"{age / size:.0f} {unit}" if age < 20 * 365 * 86400 else "unknown"
    return "now" if age >= 0 else "unknown"


def got(attempts: Iterable[Got], before: Collection[str] = ()) -> str:
    """What came of getting images; ``before`` are the names of those that were here, as they should be, already."""
    rows = [
        [
            each.name,
            "failed" if each.image is None else "was current" if each.name in before else each.image.source,
            seconds(each.duration),
            byte_size(each.image.size) if each.image else "",
            each.image.reference if each.image else each.fault.splitlines()[0],
        ]
        for each in attempts
    ]
    return draw(["implementation", "result", "took", "size", "reference"], rows, right=("took", "size"))


def checkup(findings: Iterable[Finding]) -> str:
    """What a quick look at implementations has found, a row for each of their roles."""
    answers = {True: "yes", False: "no", None: ""}
    rows = [
        [
            each.name,
            each.role,
            answers[each.compliant],
            _short(each.small),
            _short(each.large),
            _short(each.ipv6),
            _functional(each.functional),
            answers[each.key_log],
            answers[each.qlog],
            each.reason,
        ]
        for each in findings
    ]
    transfers = ["1 KiB", "10 MiB", "IPv6"]
    header = ["implementation", "role", "compliant", *transfers, "functional", "key log", "qlog", "reason"]
    return draw(header, rows, right=("10 MiB",), wrapped={"reason": 60})


def _functional(results: Sequence[RunResult]) -> str:
    """``5/6 × v2``: how many of those that say something about it passed, and which did not."""
    silent = (Outcome.UNSUPPORTED, Outcome.ERROR, Outcome.SKIPPED)
    telling = [each for each in results if outcome_of(each) not in silent]
    failed = [each.test_case for each in telling if outcome_of(each) is not Outcome.SUCCEEDED]
    passed = f"{len(telling) - len(failed)}/{len(telling)}" if telling else ""
    return " × ".join([passed, ", ".join(failed)]) if failed else passed


def _short(result: RunResult | None) -> str:
    """Goodput where there is one to speak of, else the outcome."""
    if result is None:
        return "not run"
    if result.verdict.outcome is not Outcome.SUCCEEDED:
        return result.verdict.outcome
    goodput = result.measurement.values.get("goodput") if result.measurement else None
    text = "✓" if goodput is None or result.test_case != LARGE else mbit_per_s(goodput)
    return text if result.protocol is Protocol.HQ else f"{text}  {result.protocol}"
