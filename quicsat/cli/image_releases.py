"""``./run.py images outdated`` and ``releases``: versions from which images are built, and all that can be built."""

import json
from collections.abc import Iterable, Sequence
from datetime import UTC, date, datetime
from pathlib import Path

from quicsat.cli import console
from quicsat.cli.image_actions import ImageRequest, Report
from quicsat.cli.output_files import check_json
from quicsat.config.inventory import Inventory
from quicsat.docker.daemon_images import DaemonImages
from quicsat.docker.ssh_tunnel import connected
from quicsat.images.releases import Release, ReleaseState, buildable, releases_of
from quicsat.images.status import stock_of
from quicsat.model.errors import InputError, MachineError
from quicsat.model.names import base_name
from quicsat.model.text import printable
from quicsat.model.units import byte_size
from quicsat.model.whole_file import write_atomically
from quicsat.plan.select_implementations import select_images
from quicsat.report.drawing import draw, fill

RELEASES = ("release", "image", "size")
HEADER = ("implementation", "version", "age", "newest", "date")


KEYS = frozenset({"implementation", "registry", "package", "newest"})
"""Of each version in the JSON file."""


def outdated(names: Sequence[str], root: Path, file: Path | None) -> Report:
    """A row for each implementation; also writes ``file`` as JSON. Failed if a version is outdated.

    A registry that does not answer makes the report incomplete (``missing``). Raises :class:`InputError` if nothing
    that was named is built from a package, and :class:`MachineError` if a Dockerfile names no version.
    """
    check_json(file, "list of versions", KEYS)
    known = Inventory(root).implementations
    chosen = dict.fromkeys(base_name(each.name) for each in select_images(names, known)[0])
    releases = releases_of(root, (known[name] for name in chosen))
    if not releases:
        raise InputError(f"No package is known of {', '.join(chosen or names)}.")
    if file is not None:
        write_atomically(file, json.dumps([_document(each) for each in releases], indent=1).encode() + b"\n")
    states = {each.state for each in releases}
    return Report(
        table(releases, datetime.now(UTC).date(), console.width()),
        missing=ReleaseState.UNKNOWN in states,
        failed=ReleaseState.OUTDATED in states,
    )


def releases(request: ImageRequest) -> Report:
    """A row for each release that can be built of the named implementations, by default of all.

    A registry that does not answer makes the report incomplete (``missing``). Raises :class:`InputError` if other
    releases of a named one cannot be built.
    """
    known = Inventory(request.root).implementations
    named = dict.fromkeys(base_name(each.name) for each in select_images(request.names, known)[0])
    chosen = [known[name] for name in named if request.names or known[name].releases]
    rows, faults = [], []
    with connected(request.daemon, "images") as daemon:
        store = DaemonImages(daemon)
        for each in chosen:
            try:
                found = [stock_of(store, request.root, release)[-1] for release in buildable(each)]
            except MachineError as fault:
                faults.append(f"{each.name}: {printable(str(fault))}")
            else:
                rows += [[one.name, one.state, byte_size(one.image.size) if one.image else ""] for one in found]
    shown = [draw(RELEASES, rows, width=console.width(), right=("size",))] if rows else []
    return Report("\n".join([*shown, *(fill(fault, console.width()) for fault in faults)]), missing=bool(faults))


def table(releases: Iterable[Release], today: date, width: int | None = None) -> str:
    """Releases with their ages on ``today``, then notes: faults of registries, unmaintained packages, CPU costs."""
    rows, notes = [], dict[str, None]()
    for each in releases:
        newest = each.newest if each.state is ReleaseState.OUTDATED else each.state
        row = (each.name, each.version, _age(each.released, today), newest, _iso(each.newest_released))
        rows.append([printable(field) for field in row])
        if each.fault:
            notes[f"{each.package.registry}: {printable(each.fault)}"] = None
        if each.package.unmaintained:
            notes[f"{each.name}: {each.package.unmaintained}"] = None
        if each.costs_of:
            notes[f"{each.name}: CPU cost measured with {printable(each.costs_of)}"] = None
    lines = [draw(HEADER, rows, width=width, right=("age",)), *(fill(note, width) for note in notes)]
    return "\n".join(lines)


def _age(day: date | None, today: date) -> str:
    return f"{(today - day).days} d" if day else ""


def _iso(day: date | None) -> str:
    return day.isoformat() if day else ""


def _document(release: Release) -> dict[str, str | None]:
    return {
        "implementation": release.name,
        "registry": release.package.registry,
        "package": release.package.name,
        "version": release.version,
        "released": _iso(release.released) or None,
        "newest": release.newest or None,
        "newest released": _iso(release.newest_released) or None,
        "state": release.state,
        "unmaintained": release.package.unmaintained or None,
        "CPU cost measured with": release.costs_of or None,
        "fault": release.fault or None,
    }
