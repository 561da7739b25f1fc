"""What names and image references may look like, and what a mistyped one may have meant."""

import difflib
import re
from collections.abc import Collection, Iterable

NAME_RULE = "1 to 64 of a-z, 0-9, dot, hyphen and underscore, the first a letter or a digit"
_NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}")

VARIANT_SIGN = ":"
"""Between the name of an implementation and that of its variant; no name contains it."""
RELEASE_SIGN = "@"
"""Between the name of an implementation and a release of it, ``quinn@0.11.5``; a variant's sign can follow."""
VERSION_RULE = "1 to 40 of a-z, 0-9, dot and hyphen, the first a letter or a digit, with a digit"
_VERSION = re.compile(r"(?=[a-z.-]*[0-9])[a-z0-9][a-z0-9.-]{0,39}")
FOLDER_SIGN = "+"
"""Replaces :data:`VARIANT_SIGN` in paths."""

MEMBER_SIGN, VALUE_SIGN = "@", "="
"""Of members of a family, ``lossy@loss=1pct@delay=15ms``; no other name of a test case contains them."""
FLOW_SIGN = "~"
"""Before each further flow in the name of a test case, ``sat~nginx-tcp_curl_2s``; no other name contains it."""
_LONGEST_MEMBER = 128
_LONGEST_FLOWS = 200
_MEMBER = re.compile(r"(?:@[a-z][a-z0-9-]*=[a-z0-9.-]+)+")
_FLOWS = re.compile(r"(?:~[a-z0-9][a-z0-9._+@-]{0,280}){1,5}")

IMAGE_RULE = 'written like "owner/name:tag"'
_LONGEST_IMAGE = 400
_LABEL = r"[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?"
_HOST = rf"(?:localhost|{_LABEL}(?:\.{_LABEL})+|{_LABEL}(?=:))(?::[0-9]{{1,5}})?"
_PART = r"[a-z0-9]+(?:(?:\.|__?|-+)[a-z0-9]+)*"
_IMAGE = re.compile(
    rf"(?:{_HOST}/)?{_PART}(?:/{_PART})*(?::[A-Za-z0-9_][A-Za-z0-9_.-]{{0,127}})?(?:@sha256:[0-9a-f]{{64}})?"
)
"""Grammar of Docker's image references: [host[:port]/]path[:tag][@digest]."""

_LONGEST_GUESS = 60
"""Characters of a mistyped word that are compared."""
_GUESSES = 10
"""Similar known names among which a message suggests the nearest one."""


def is_name(text: str) -> bool:
    """Whether ``text`` keeps :data:`NAME_RULE`, and so is safe as a folder's name too."""
    return _NAME.fullmatch(text) is not None


def is_implementation(text: str) -> bool:
    """Whether ``text`` names an implementation, a release of one, ``quinn@0.11.5``, or a variant, ``picoquic:bbr``."""
    text, colon, variant = text.partition(VARIANT_SIGN)
    name, sign, version = text.partition(RELEASE_SIGN)
    return is_name(name) and (not sign or is_version(version)) and (not colon or is_name(variant))


def is_version(text: str) -> bool:
    """Whether ``text`` keeps :data:`VERSION_RULE`, and so is safe in the name of a folder or of an image."""
    return _VERSION.fullmatch(text) is not None


def base_name(implementation: str) -> str:
    """``quinn@0.11.5:bbr`` -> ``quinn``."""
    return implementation.partition(VARIANT_SIGN)[0].partition(RELEASE_SIGN)[0]


def is_test_case(text: str) -> bool:
    """Whether ``text`` names a test case: ``sat``, with a workload ``sat+page-p50``, of a family ``lossy@loss=1pct``.

    It may have further flows, ``sat~same``. Such a name is safe as a folder's name, too.
    """
    text, flows = split_flows(text)
    if not are_flows(text, flows):
        return False
    name, plus, workload = text.partition(FOLDER_SIGN)
    name, sign, values = name.partition(MEMBER_SIGN)
    fits = is_name(name) and (not plus or is_name(workload))
    return fits and (not sign or (len(text) <= _LONGEST_MEMBER and _MEMBER.fullmatch(sign + values) is not None))


def split_flows(text: str) -> tuple[str, str]:
    """``sat~same`` -> ``sat``, ``~same``."""
    name, sign, flows = text.partition(FLOW_SIGN)
    return name, sign + flows


def are_flows(name: str, flows: str) -> bool:
    """Whether ``flows``, if any, may follow the name of a test case, or its abbreviation."""
    return not flows or (len(name + flows) <= _LONGEST_FLOWS and _FLOWS.fullmatch(flows) is not None)


def is_named(implementation: str, names: Collection[str]) -> bool:
    """Whether one of ``names`` is that of an implementation or, of a variant or release, that of its implementation."""
    own = implementation.casefold()
    return any(name.casefold() in (own, own.partition(VARIANT_SIGN)[0], base_name(own)) for name in names)


def folder_name(implementation: str) -> str:
    """An implementation's name as part of a path, where a colon is not safe: ``picoquic+bbr``.

    No other name contains a plus sign, so :func:`name_of_folder` can undo it.
    """
    return implementation.replace(VARIANT_SIGN, FOLDER_SIGN)


def name_of_folder(folder: str) -> str:
    """``picoquic+bbr`` -> ``picoquic:bbr``."""
    return folder.replace(FOLDER_SIGN, VARIANT_SIGN, 1)


def pair_folder(server: str, client: str) -> str:
    """Directory of a pair's runs: ``quic-go_picoquic+bbr``."""
    return f"{folder_name(server)}_{folder_name(client)}"


def is_image(text: str) -> bool:
    """Whether ``text`` is an image reference as Docker's grammar has it."""
    return len(text) <= _LONGEST_IMAGE and _IMAGE.fullmatch(text) is not None


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """``" Did you mean satloss?"`` with the nearest name, upper and lower case being alike, or nothing."""
    spelling = {name.casefold(): name for name in known}
    mistyped = word[:_LONGEST_GUESS].casefold()
    near = {each: _changes(mistyped, each) for each in difflib.get_close_matches(mistyped, spelling, n=_GUESSES)}
    guess = min(near, key=lambda each: near[each], default=None)
    return f" Did you mean {spelling[guess]}?" if guess is not None and near[guess] <= max(len(guess) // 3, 1) else ""


def likely(word: str, choices: Iterable[str]) -> str:
    """As :func:`did_you_mean` for a word that must mean one of a few choices, of which the nearest may be far."""
    near = difflib.get_close_matches(word[:_LONGEST_GUESS].casefold(), list(choices), n=1, cutoff=0.5)
    return f" Did you mean {near[0]}?" if near else ""


def _changes(one: str, other: str) -> int:
    """Fewest characters to add, remove, replace or swap with the next that make one word of the other."""
    rows = [list(range(len(other) + 1))]
    for i, a in enumerate(one, start=1):
        row = [i]
        for j, b in enumerate(other, start=1):
            least = min(rows[-1][j] + 1, row[-1] + 1, rows[-1][j - 1] + (a != b))
            if i > 1 and j > 1 and a == other[j - 2] and b == one[i - 2]:
                least = min(least, rows[-2][j - 2] + 1)
            row.append(least)
        rows.append(row)
    return rows[-1][-1]
