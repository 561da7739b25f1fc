"""Reads the sizes of files in YAML documents."""

import re
from itertools import chain, islice

from quicsat.config.quantities import SIZE, count, size, within
from quicsat.config.yaml_fields import Fields
from quicsat.model.units import MIB, byte_size

LARGEST_TOTAL = 10 * 1024 * MIB
"""Bytes of all files of a test case together."""
FILE_SIZE_KEYS = ("file size", "file sizes")

MOST_FILES = 10_000
"""Files of a test case together."""
_FILE_SIZE = within(size, "1 B", "10 GiB")
_FILES = within(count, "1", str(MOST_FILES))


def parse_sizes(text: str) -> tuple[int, ...]:
    """``"2 MiB"`` -> one file's size, ``"50 × 1 KiB"`` (or with an x) -> those of fifty, ``none``; bytes."""
    if text == "none":
        return ()
    number, sign, each = re.sub("[×x]", "×", text).partition("×")
    return (_FILE_SIZE(each.strip()),) * _FILES(number.strip()) if sign else (_FILE_SIZE(text),)


def read_file_sizes(fields: Fields, *, needed: bool) -> tuple[int, ...] | None:
    """Bytes of each file; None if neither key is there (``needed``: reported), or the value is faulty."""
    used = [key for key in FILE_SIZE_KEYS if key in fields]
    if len(used) > 1:
        fields.note('write either "file size" or "file sizes".', fields.line_of(used[1]))
    if not used:
        if needed:
            fields.require({FILE_SIZE_KEYS[0]: SIZE.example})
        return None
    read = fields.read_list(used[0], parse_sizes)
    sizes = None if read is None else tuple(islice(chain.from_iterable(read), MOST_FILES + 1))
    if sizes and len(sizes) > MOST_FILES:
        fields.note(f"there are more than {MOST_FILES} files.", fields.line_of(used[0]))
    if sizes and sum(sizes) > LARGEST_TOTAL:
        fields.note(f"all files together are larger than {byte_size(LARGEST_TOTAL)}.", fields.line_of(used[0]))
    return sizes
