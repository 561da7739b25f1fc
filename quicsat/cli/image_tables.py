"""The tables of ``./run.py images``: images on this machine, results of builds and pulls, results of checks."""

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from textwrap import wrap

from quicsat.cli.image_check import PEER, ImageCheck, Remark, outcome_of
from quicsat.config.yaml_fields import display_path
from quicsat.docker import provenance
from quicsat.images.status import Got, Stocked
from quicsat.model.implementation import Protocol, Role
from quicsat.model.outcomes import Outcome
from quicsat.model.results import Provenance, RunResult
from quicsat.model.text import command_line, printable
from quicsat.model.units import MBPS, byte_size, seconds
from quicsat.report.drawing import draw
from quicsat.report.functional_table import MARKS

WIDTH = 80
CHECK_LEGEND = (
    "127: exit status for an unknown test. Mbit/s: goodput of 10 MiB. tests: functional",
    "tests passed of those judged. keys, qlog: whether the logs can be used.",
    "× failed, T timed out, – unsupported, ! harness error, » skipped, · not run.",
)
URL = "https://example.org"
TO_ADD = "To measure with the image, even if it fails tests, add this line to implementations.json:"
THEN = "Then measure:"


def images(stocked: Iterable[Stocked], now: datetime, width: int | None = None) -> str:
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
    return draw(header, rows, width=width, right=("size", "age"))


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


def sources(origins: Iterable[Origin], *, width: int | None = None, markdown: bool = False) -> str:
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
    return draw([name for name in header if name != left_out], rows, width=width, markdown=markdown)


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


def fetched(attempts: Iterable[Got], before: Collection[str] = (), width: int | None = None) -> str:
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
    return draw(["implementation", "result", "took", "size", "reference"], rows, width=width, right=("took", "size"))


def check(findings: Sequence[ImageCheck], width: int | None = None) -> str:
    """Results of a check: a row per implementation and role, then all that is wrong and what else was noticed."""
    answers = {True: "yes", False: "no", None: ""}
    rows = [
        [
            each.name,
            each.role,
            answers[each.compliant],
            _mark(each.small),
            _goodput(each.large),
            _mark(each.ipv6),
            _functional(each.functional),
            answers[each.key_log],
            answers[each.qlog],
        ]
        for each in findings
    ]
    header = ["implementation", "role", "127", "1 KiB", "Mbit/s", "IPv6", "tests", "keys", "qlog"]
    lines = [draw(header, rows, width=width, keys=2, right=("Mbit/s",)), "", *CHECK_LEGEND]
    for each in findings:
        remarks = [*_remarks("problem", each.problems), *_remarks("note", each.notes)]
        if each.without_role and not each.problems:
            lines += ["", f"{each.name} does not support the role of a {each.role}."]
        elif remarks:
            lines += ["", f"{each.name} as a {each.role}:", *remarks]
    return "\n".join(lines)


def _remarks(kind: str, remarks: Iterable[Remark]) -> Iterator[str]:
    """Lines of at most ``WIDTH`` characters, but for commands and for lines of containers."""
    for remark in remarks:
        text = f"{kind}: {remark.about}: {printable(remark.text, None)}"
        yield from wrap(text, WIDTH, initial_indent="  ", subsequent_indent="    ", break_on_hyphens=False)
        if remark.run is not None:
            yield f"    {command_line('explain', display_path(remark.run))}"
        yield from (f"    | {line}" for line in remark.output.splitlines())


def entries(findings: Iterable[ImageCheck], images: Mapping[str, str], options: Sequence[str] = ()) -> list[str]:
    """The entries for ``images`` without one, by name, if a file arrived in one role, and commands that measure."""
    roles: dict[str, list[Role]] = {}
    able: set[str] = set()
    for each in findings:
        if each.name in images and not each.without_role:
            roles.setdefault(each.name, []).append(each.role)
            if outcome_of(each.small) is Outcome.SUCCEEDED:
                able.add(each.name)
    usable = {name: of for name, of in roles.items() if name in able}
    lines = [
        json.dumps({name: {"image": images[name], "url": URL, "role": "both" if len(of) > 1 else of[0]}})
        for name, of in usable.items()
    ]
    commands = [
        command_line("-s", *((name, "-c", PEER) if role is Role.SERVER else (PEER, "-c", name)), "-t", "sat", *options)
        for name, of in usable.items()
        for role in of
    ]
    shown = [TO_ADD, *(f"  {line[1:-1]}" for line in lines), "", THEN, *(f"  {command}" for command in commands)]
    return ["\n".join(shown)] if lines else []


def _functional(results: Sequence[RunResult]) -> str:
    """``5/6``: passed / judged functional tests."""
    silent = (Outcome.UNSUPPORTED, Outcome.ERROR, Outcome.SKIPPED)
    telling = [each for each in results if outcome_of(each) not in silent]
    passed = sum(outcome_of(each) is Outcome.SUCCEEDED for each in telling)
    return f"{passed}/{len(telling)}" if telling else ""


def _mark(result: RunResult | None) -> str:
    """The sign of the outcome, and the protocol of a transfer over another one than HTTP/0.9."""
    if result is None:
        return "·"
    mark = MARKS[result.verdict.outcome].text
    done = result.verdict.outcome is Outcome.SUCCEEDED
    return mark if result.protocol is Protocol.HQ or not done else f"{mark} {result.protocol}"


def _goodput(result: RunResult | None) -> str:
    """Goodput of the large transfer in Mbit/s, else its sign."""
    goodput = result.measurement.values.get("goodput") if result and result.measurement else None
    return _mark(result) if goodput is None else f"{goodput / MBPS:.2f}"
