"""SVG figures that only show something: anyone may have put the file into a campaign, and a browser runs scripts in it.

What is left has only shapes, texts, and images that are in the file; matplotlib's figures look the same.
"""

import re
from xml.etree import ElementTree as Xml

from quicsat.model.text import printable

_SVG, _XLINK = "{http://www.w3.org/2000/svg}", "{http://www.w3.org/1999/xlink}"
_PATH, _USE = f"{_SVG}path", f"{_SVG}use"
_TEXTS = {f"{_SVG}text", f"{_SVG}tspan"}
_IMAGE = f"{_SVG}image"
_ELEMENTS = {_PATH, _USE, _IMAGE, *_TEXTS, *(f"{_SVG}{name}" for name in ("g", "defs", "clipPath", "rect"))}
_ATTRIBUTES = {"id", "d", "x", "y", "width", "height", "viewBox", "transform", "clip-path", "style"}
_HREF = f"{_XLINK}href"
_VALUE = re.compile(r"[\w\s.,:;#%'()+-]*")
_LEADS_OUT = re.compile(r"url(?!\(#)", re.IGNORECASE)
_PNG = re.compile(r"data:image/png;base64,[A-Za-z0-9+/=\s]*")
_LINES = {"stroke-linejoin": "round", "stroke-linecap": "butt"}
"""What matplotlib's style sheet says of all lines."""
_DAMAGED = b'<svg xmlns="http://www.w3.org/2000/svg" width="300" height="30"><text y="20">no SVG figure</text></svg>\n'

Xml.register_namespace("", _SVG[1:-1])
Xml.register_namespace("xlink", _XLINK[1:-1])


def safe(content: bytes) -> bytes:
    """An SVG figure without what is not in the lists of this module; a figure that says so if it is none."""
    try:
        root = Xml.fromstring(content)
        if root.tag != f"{_SVG}svg":
            return _DAMAGED
        shapes = {each.get("id") for each in root.iter(_PATH)}
        todo = [root]
        while todo:
            element = todo.pop()
            _clean(element)
            element[:] = [each for each in element if _is_allowed(each, shapes)]
            todo += element
        root.attrib |= _LINES
        return bytes(Xml.tostring(root, encoding="utf-8", xml_declaration=True))
    except (Xml.ParseError, LookupError, RecursionError, ValueError):
        return _DAMAGED


def _is_allowed(element: Xml.Element, shapes: set[str | None]) -> bool:
    """A shape is used again without those that it uses itself, which could be many times as many."""
    if element.tag == _USE:
        return element.get(_HREF, "").removeprefix("#") in shapes
    return element.tag in _ELEMENTS


def _clean(element: Xml.Element) -> None:
    """Remove attributes and text that are not allowed."""
    for name, value in list(element.items()):
        if name == _HREF:
            allowed = element.tag == _USE or (element.tag == _IMAGE and _PNG.fullmatch(value))
        else:
            allowed = name in _ATTRIBUTES and _VALUE.fullmatch(value) and not _LEADS_OUT.search(value)
        if not allowed:
            del element.attrib[name]
    element.text = printable(element.text, None) if element.text and element.tag in _TEXTS else None
    element.tail = None
