"""Reads the objectives of a test case: amounts of data, and the times within which they must arrive."""

from quicsat.config.quantities import duration, size, within, word_or_mapping
from quicsat.config.yaml_fields import Fields
from quicsat.model.objective import Objective
from quicsat.model.text import quoted

KEY = "objectives"
NONE = "none"
EXAMPLE = "{2 MB: 3 s, 10 MB: 5 s}"

_SIZE = within(size, "1 B", "10 GiB")
_LIMIT = within(duration, "1 ms", "24 h")
_NONE = word_or_mapping(NONE, f"is neither {NONE} nor a mapping from sizes to times; write for example {EXAMPLE}")


def read_objectives(fields: Fields) -> tuple[Objective, ...] | None:
    """The value of ``objectives``, the smallest first; empty for ``none``; None if missing or faulty (reported)."""
    if not fields.holds_mapping(KEY):
        return None if fields.read(KEY, _NONE) is None else ()
    faults = len(fields.problems)
    own = fields.mapping(KEY, about=f"{fields.about}{KEY}: ")
    sizes: dict[int, str] = {}
    found: list[Objective] = []
    for text in own:
        limit = own.read(text, _LIMIT)
        try:
            amount = _SIZE(text)
        except ValueError as fault:
            own.note(f"{quoted(text)} {fault}", own.line_of(text))
            continue
        if sizes.setdefault(amount, text) != text:
            own.note(f"{quoted(text)} is the same size as {quoted(sizes[amount])}.", own.line_of(text))
        if limit is not None:
            found.append(Objective(amount, limit))
    if not found and len(fields.problems) == faults:
        own.note(f"has no sizes; write for example {EXAMPLE}, or {NONE}.")
    return tuple(sorted(found, key=lambda each: each.size)) if len(fields.problems) == faults else None
