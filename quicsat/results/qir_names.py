"""Names in the JSON of QIR and QIR-SE: their web pages build CSS selectors of them, in which some signs have a meaning.

Letters that look much the same take their place, so that a name can be read back: ``picoquic+bbr`` -> ``picoquicːbbr``,
``SWL@0.1pct`` -> ``SWL˚0·1pct``. They may be part of CSS identifiers (CSS Syntax Module Level 3, section 4.2).
"""

LETTERS = {"+": "\u02d0", "@": "\u02da", ".": "\u00b7", "~": "\u02dc"}
"""Every sign that names of implementations and abbreviations of test cases may have, besides hyphens."""
_TO_LETTERS = str.maketrans(LETTERS)
_TO_SIGNS = str.maketrans({letter: sign for sign, letter in LETTERS.items()})


def without_signs(name: str) -> str:
    """A name as the web pages can use it."""
    return name.translate(_TO_LETTERS)


def with_signs(name: str) -> str:
    """Undoes :func:`without_signs`."""
    return name.translate(_TO_SIGNS)
