"""What names and image references may look like, and what a mistyped one may have meant."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable

NAME_RULE = "1 to 64 of a-z, 0-9, dot, hyphen and underscore, the first a letter or a digit"
_NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}")

VARIANT_SIGN = ":"
"""Between the name of an implementation and that of its variant; no name holds it."""

IMAGE_RULE = 'written like "owner/name:tag"'
_LONGEST_IMAGE = 400
_LABEL = r"[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?"
_HOST = rf"(?:localhost|{_LABEL}(?:\.{_LABEL})+|{_LABEL}(?=:))(?::[0-9]{{1,5}})?"
_PART = r"[a-z0-9]+(?:(?:\.|__?|-+)[a-z0-9]+)*"
_IMAGE = re.compile(
    rf"(?:{_HOST}/)?{_PART}(?:/{_PART})*(?::[A-Za-z0-9_][A-Za-z0-9_.-]{{0,127}})?(?:@sha256:[0-9a-f]{{64}})?"
)
"""Grammar of Docker's image references: [host[:port]/]path[:tag][@digest]."""

_SHOWN = 60


def is_name(text: str) -> bool:
    """Whether ``text`` keeps :data:`NAME_RULE`, and so is safe as a folder's name too."""
    return _NAME.fullmatch(text) is not None


def is_implementation(text: str) -> bool:
    """Whether ``text`` names an implementation or a variant of one, ``picoquic:bbr``."""
    name, colon, variant = text.partition(VARIANT_SIGN)
    return is_name(name) and (not colon or is_name(variant))


def is_image(text: str) -> bool:
    """Whether ``text`` is an image reference as Docker's grammar has it."""
    return len(text) <= _LONGEST_IMAGE and _IMAGE.fullmatch(text) is not None


def printable(text: str) -> str:
    """``text`` with an escape for whatever could steer a terminal or cannot be encoded."""
    return "".join(sign if sign.isprintable() else sign.encode("unicode_escape").decode("ascii") for sign in text)


def quoted(text: str) -> str:
    """``text`` in double quotes, cut to 60 characters and printable."""
    return f'"{printable(text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…")}"'


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """``" Did you mean satloss?"`` with the nearest name, upper and lower case being alike, or nothing."""
    spelling = {name.casefold(): name for name in known}
    near = difflib.get_close_matches(word[:_SHOWN].casefold(), spelling, n=1)
    return f" Did you mean {spelling[near[0]]}?" if near else ""
