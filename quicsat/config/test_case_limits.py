"""Reads the limits of a test case: the memory and CPUs of endpoints, and the size of what a run leaves."""

from quicsat.config.quantities import count, decimal, size, within, word_or_mapping
from quicsat.config.yaml_fields import Fields
from quicsat.model.run_limits import RunLimits

KEY = "limits"
EXAMPLE = "{memory: 8 GiB}"
_SIZE = within(size, "1 MiB", "1024 GiB")
_NONE = word_or_mapping("none", f"must be a mapping such as {EXAMPLE}, or none")
PARSERS = {
    "memory": within(size, "64 MiB", "1024 GiB"),
    "cpus": within(decimal, "0.01", "1024"),
    "processes": within(count, "16", "100000"),
    "logs": _SIZE,
    "downloads": _SIZE,
    "traces": _SIZE,
}


def read_limits(fields: Fields, inherited: RunLimits | None) -> RunLimits | None:
    """The limits of a test case; keys that are missing are inherited, and ``none`` removes those inherited."""
    if KEY not in fields:
        return inherited
    if not fields.holds_mapping(KEY):
        fields.read(KEY, _NONE)
        return None
    return fields.record(KEY, RunLimits(), inherited, PARSERS)
