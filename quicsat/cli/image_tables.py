"""The tables of ``./run.py images``: images on this machine, results of builds and pulls, results of checks."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from quicsat.cli.image_check import LARGE, ImageCheck, outcome_of
from quicsat.docker import provenance
from quicsat.images.status import Got, Stocked
from quicsat.model.implementation import Protocol
from quicsat.model.outcomes import Outcome
from quicsat.model.results import Provenance, RunResult
from quicsat.model.units import byte_size, mbit_per_s, seconds
from quicsat.report.terminal_tables import draw


def images(stocked: Iterable[Stocked], now: datetime) -> str:
    """Images on this machine, with their age at the time ``now``."""
    rows = []
    for each in stocked:
        image = each.image
        details = ["", "", "", ""]
        if image is not None:
            age = _age(image.created, now)
            details = [image.version or "unknown", byte_size(image.size), age, image.short_id]
        rows.append([each.name, each.source, each.state, *details, each.reference])
    header = ["implementation", "source", "state", "version", "size", "age", "digest", "reference"]
    return draw(header, rows, right=("size", "age"))


@dataclass(frozen=True)
class Origin:
    """Origin of an image."""

    name: str
    state: str
    """State of the image; says so if the rest comes from the Dockerfile."""
    version: str
    provenance: Provenance


def stated(name: str, state: str, labels: Mapping[str, str]) -> Origin:
    """Origin of an image from the labels of its Dockerfile."""
    return Origin(name, state, labels.get(provenance.VERSION, ""), provenance.of_labels(labels))


def sources(origins: Iterable[Origin], *, markdown: bool = False) -> str:
    """A row for each image: source, version, commit, patches, build type, GSO. Markdown has all, without states."""
    left_out = "image" if markdown else "our changes"
    header = ["implementation", "image", "source", "version", "commit", "patches", "our changes", "build type", "GSO"]
    rows = []
    for each in origins:
        origin, patches = each.provenance, each.provenance.patches
        found = [
            each.name, each.state, origin.source, each.version, origin.revision[:12],
            "" if patches is None else _patches(patches, whole=markdown), origin.changes, origin.build_type, origin.gso,
        ]  # fmt: skip
        rows.append([value or "unknown" for name, value in zip(header, found, strict=True) if name != left_out])
    return draw([name for name in header if name != left_out], rows, markdown=markdown)


def _patches(names: Sequence[str], *, whole: bool) -> str:
    return ", ".join(names) if names and (whole or len(names) == 1) else str(len(names)) if names else "none"


def _age(created: str, now: datetime) -> str:
    """``3 d``; ``unknown`` if there is no date, or the fixed one of a reproducible build."""
    try:
        age = (now - datetime.fromisoformat(created)).total_seconds()
    except (ValueError, TypeError):
        return "unknown"
    for unit, size in (("d", 86400), ("h", 3600), ("min", 60)):
        if age >= size:
            return f"{age / size:.0f} {unit}" if age < 20 * 365 * 86400 else "unknown"
    return "now" if age >= 0 else "unknown"


def fetched(attempts: Iterable[Got], before: Collection[str] = ()) -> str:
    """Results of builds or pulls; ``before``: names of images that were already current."""
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


def check(findings: Iterable[ImageCheck]) -> str:
    """Results of a check, a row per implementation and role."""
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
    """``5/6 × v2``: passed / judged functional tests, and the names of the failed ones."""
    silent = (Outcome.UNSUPPORTED, Outcome.ERROR, Outcome.SKIPPED)
    telling = [each for each in results if outcome_of(each) not in silent]
    failed = [each.test_case for each in telling if outcome_of(each) is not Outcome.SUCCEEDED]
    passed = f"{len(telling) - len(failed)}/{len(telling)}" if telling else ""
    return " × ".join([passed, ", ".join(failed)]) if failed else passed


def _short(result: RunResult | None) -> str:
    """Goodput of the large transfer, a check mark for the others, else the outcome."""
    if result is None:
        return "not run"
    if result.verdict.outcome is not Outcome.SUCCEEDED:
        return result.verdict.outcome
    goodput = result.measurement.values.get("goodput") if result.measurement else None
    text = "✓" if goodput is None or result.test_case != LARGE else mbit_per_s(goodput)
    return text if result.protocol is Protocol.HQ else f"{text}  {result.protocol}"
