"""Templates -> HTML pages: every value is escaped where it is put in (only importer of jinja2)."""

import re
from collections.abc import Callable
from datetime import UTC, datetime
from functools import lru_cache, partial
from pathlib import Path
from types import CodeType
from typing import Any

import jinja2
from jinja2.bccache import Bucket

from quicsat.analysis.metrics import METRICS, Metric
from quicsat.config.tool_version import release
from quicsat.model.link_format import format_link
from quicsat.model.moments import moment
from quicsat.model.outcomes import Outcome
from quicsat.model.product_files import as_installed
from quicsat.model.text import counted, printable
from quicsat.model.units import byte_size, percent, seconds
from quicsat.report.table import Column, Value
from quicsat.report.table import shown as in_words
from quicsat.site.matrix_cell_text import BY_KEY, CELL_STATES, CellState, goodput
from quicsat.statistics.intervals import Mean

_WEB_ADDRESS = re.compile(r"https?://[A-Za-z0-9.-]+(?::[0-9]+)?(?:/[^\s\"'<>\\]*)?")


class _Compiled(jinja2.BytecodeCache):
    """Templates that were compiled for one site serve the next one; a template whose text has changed is another."""

    def __init__(self) -> None:
        self._kept: dict[tuple[str, str], CodeType] = {}

    def load_bytecode(self, bucket: Bucket) -> None:
        """Give it its code, if there is some."""
        bucket.code = self._kept.get((bucket.key, bucket.checksum))

    def dump_bytecode(self, bucket: Bucket) -> None:
        """Keep its code."""
        if bucket.code is not None:
            self._kept[bucket.key, bucket.checksum] = bucket.code


_COMPILED = _Compiled()
"""Compiling them takes two thirds of the time that a small site needs."""


class _Templates(jinja2.FileSystemLoader):
    """The templates of a folder, with the names that the program's commands have here."""

    def get_source(self, environment: jinja2.Environment, template: str) -> tuple[str, str, Callable[[], bool]]:
        """Text and path of a template, and whether it is unchanged."""
        text, path, unchanged = super().get_source(environment, template)
        return as_installed(text), path, unchanged


class Renderer:
    """The templates of one folder, with what all of them may use; autoescape is on and nothing is marked as safe."""

    def __init__(self, folder: Path, assets: str, built: datetime) -> None:
        """``assets``: folder of style sheets and scripts below the root of the site."""
        self._environment = jinja2.Environment(
            loader=_Templates(folder),
            autoescape=True,
            undefined=jinja2.StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
            auto_reload=False,
            bytecode_cache=_COMPILED,
        )
        self._environment.policies["json.dumps_kwargs"] = {"sort_keys": False}
        self._environment.globals.update(
            assets=assets, built=built.astimezone(UTC), version=release(), states=CELL_STATES, metrics=METRICS
        )
        self._environment.filters.update(
            clean=printable,
            counted=counted,
            bytes=byte_size,
            mbit=goodput,
            percent=percent,
            seconds=seconds,
            duration=duration,
            metric=number,
            ends=ends,
            link=format_link,
            glyph=glyph,
            sentence=partial(printable, longest=2000),
            cell=in_sheet,
            day=day,
            moment=in_day,
            web=web_address,
        )

    def page(self, template: str, **values: Any) -> bytes:
        """A page; ``values`` are what its template asks for, a missing one is an error."""
        return self._environment.get_template(template).render(values).encode("utf-8", "replace")


def ends(metric: Metric, mean: Mean) -> str:
    """The interval of a mean: ``4.90 Mbit/s to 5.10 Mbit/s``, or both ends as one; else the range, or why."""
    if mean.ends is None:
        return f"no interval: {mean.why}"
    low, high = (number(metric, end) for end in mean.ends)
    told = f"{low} to {high}" if low != high else f"{low} at both ends"
    return told if mean.low is not None else f"range of {mean.why}: {told}"


def number(metric: Metric, value: float | None) -> str:
    """A metric's value with its unit; a dash for none."""
    if value is None:
        return "–"
    if metric.unit == "bit/s":
        return f"{goodput(value)} Mbit/s"
    if metric.unit == "s":
        return seconds(value)
    if metric.unit == "B":
        return byte_size(round(value))
    if metric.name.startswith(("efficiency", "loss", "queue_loss")):
        return percent(value, 0 if metric.name == "efficiency" else 2)
    return f"{value:.3g}"


def in_sheet(value: Value, column: Column) -> str:
    """A field of a table."""
    return printable(in_words(value, column))


def glyph(outcome: Outcome | str) -> CellState:
    """How an outcome is shown."""
    return BY_KEY[outcome]


@lru_cache(1024)
def day(moment: datetime | None) -> str:
    """``2026-11-21 06:00 UTC``; a dash for none."""
    return f"{moment.astimezone(UTC):%Y-%m-%d %H:%M} UTC" if moment else "–"


def duration(time: float) -> str:
    """``754.0`` s -> ``"13 min"``, ``7300.0`` s -> ``"2 h 2 min"``; a dash for nothing."""
    if time < 100:
        return f"{time:.0f} s" if time > 0 else "–"
    hours, minutes = divmod(round(time / 60), 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min"


def in_day(text: str) -> str:
    """A time as it stands in a file, as ``day`` shows it; its own words if it is none."""
    found = moment(text)
    return (printable(text) or "–") if found is None else day(found)


def web_address(text: str) -> str:
    """The same, if it is a plain http(s) address; else nothing, so that no other scheme becomes a link."""
    return text if _WEB_ADDRESS.fullmatch(text) else ""
