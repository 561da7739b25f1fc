"""Reads the limits of a test case: the memory and CPUs of endpoints, and the size of what a run leaves."""

from __future__ import annotations

from typing import TypeVar

from quicsat.config.quantities import count, decimal, size, within
from quicsat.config.yaml_fields import Fields
from quicsat.model.run_limits import RunLimits

T = TypeVar("T")

KEY = "limits"
KEYS = ("memory", "cpus", "processes", "logs", "downloads", "traces")
EXAMPLE = "{memory: 8 GiB}"
_MEMORY = within(size, "64 MiB", "1024 GiB")
_SIZE = within(size, "1 MiB", "1024 GiB")
_CPUS = within(decimal, "0.01", "1024")
_PROCESSES = within(count, "16", "100000")


def read_run_limits(fields: Fields, inherited: RunLimits | None) -> RunLimits | None:
    """The limits of a test case; keys that are missing are inherited, and ``none`` removes those inherited."""
    if KEY not in fields:
        return inherited
    if not fields.holds_mapping(KEY):
        fields.read(KEY, _none)
        return None
    part = fields.part(KEY)
    part.allow_only(KEYS)
    base = inherited or RunLimits()
    return RunLimits(
        memory=_or(part.read("memory", _MEMORY), base.memory),
        cpus=_or(part.read("cpus", _CPUS), base.cpus),
        processes=_or(part.read("processes", _PROCESSES), base.processes),
        logs=_or(part.read("logs", _SIZE), base.logs),
        downloads=_or(part.read("downloads", _SIZE), base.downloads),
        traces=_or(part.read("traces", _SIZE), base.traces),
    )


def _or(value: T | None, default: T | None) -> T | None:
    return default if value is None else value


def _none(text: str) -> str:
    if text != "none":
        raise ValueError(f"must be a mapping such as {EXAMPLE}, or none.")
    return text
