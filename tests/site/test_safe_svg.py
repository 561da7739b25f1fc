"""SVG figures of others: what acts goes, and figures of matplotlib look as they did."""

import io
import re
from xml.etree import ElementTree as Xml

import matplotlib as mpl
import pytest
from matplotlib.figure import Figure

from quicsat.site.safe_svg import safe

_HEAD = '<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink"'
ACTIVE = (
    ' onload="window.pwned=1">', "><script>window.pwned=1</script>", '><script xlink:href="data:,window.pwned=1"/>',
    '><h:script xmlns:h="http://www.w3.org/1999/xhtml">window.pwned=1</h:script>',
    '><g onclick="window.pwned=1"><rect width="9" height="9"/></g>',
    '><a xlink:href="javascript:window.pwned=1"><text y="9">x</text></a>',
    "><foreignObject><body xmlns='http://www.w3.org/1999/xhtml' onload='window.pwned=1'/></foreignObject>",
    '><animate attributeName="href" values="javascript:window.pwned=1" onbegin="window.pwned=1"/>',
    '><set attributeName="onmouseover" to="window.pwned=1"/>', '><image xlink:href="x" onerror="window.pwned=1"/>',
    '><image xlink:href="data:image/svg+xml;base64,PHN2Zy8+"/>', '><image xlink:href="http://evil.example/x.png"/>',
    '><use xlink:href="data:image/svg+xml,%3Csvg id=%27x%27/%3E#x"/>', '><use xlink:href="http://evil.example/#x"/>',
    "><style>@import 'http://evil.example/x.css'; * {fill: url(http://evil.example/)}</style>",
    '><rect style="fill: url(http://evil.example/)"/>', '><rect style="fill: u\\72l(//evil.example)"/>',
    '><rect clip-path="URL(evil.svg#a)"/>', '><handler xmlns:ev="x" ev:event="load">window.pwned=1</handler>',
    '><iframe xmlns="http://www.w3.org/1999/xhtml" src="javascript:window.pwned=1"/>',
    '><!-- --><?xml-stylesheet href="javascript:window.pwned=1"?>',
    '><text y="9">\u202e&lt;script&gt;window.pwned=1&lt;/script&gt;</text>',
)  # fmt: skip
"""What may stand behind the beginning of an SVG file, up to its end."""
HOSTILE = (
    *(f"{_HEAD}{active}</svg>".encode() for active in ACTIVE),
    b'<?xml version="1.0"?><?xml-stylesheet href="x.xsl" type="text/xsl"?>' + f"{_HEAD}/>".encode(),
    b"<!DOCTYPE svg [<!ENTITY x SYSTEM 'file:///etc/passwd'>]>" + f"{_HEAD}><text>&x;</text></svg>".encode(),
    b"<!DOCTYPE svg [<!ENTITY a 'ha'><!ENTITY b '" + b"&a;" * 99 + b"'>]>" + f"{_HEAD}><text>&b;</text></svg>".encode(),
    f"{_HEAD}>{'<g>' * 5000}{'</g>' * 5000}</svg>".encode(),
    b"<html xmlns='http://www.w3.org/1999/xhtml'><script>window.pwned=1</script></html>",
    b"<script>window.pwned=1</script>", b"", b"\x89PNG", "<svg/>".encode("utf-16"),
    b"<?xml version='1.0' encoding='x'?>",
)  # fmt: skip
"""SVG files that do, or pretend to do, more than show something."""
_ALLOWED = {
    "svg": {"width", "height", "viewBox", "stroke-linejoin", "stroke-linecap"},
    "text": {"x", "y", "style", "transform"},
    "g": set[str](),
    "rect": {"width", "height", "style", "clip-path"},
    "image": set[str](),
    "use": set[str](),
}


@pytest.mark.parametrize("content", HOSTILE)
def test_nothing_that_acts_is_left(content: bytes) -> None:
    found = safe(content)
    for element in Xml.fromstring(found).iter():
        name = element.tag.removeprefix("{http://www.w3.org/2000/svg}")
        assert set(element.attrib) <= _ALLOWED[name]
    assert b"evil" not in found
    assert "\u202e" not in found.decode()


def test_a_shape_is_not_used_by_what_is_used() -> None:
    """Otherwise thirty elements could draw a billion."""
    content = f'{_HEAD}><defs><path id="p" d="M 0 0"/><g id="a"><use xlink:href="#p"/><use xlink:href="#p"/></g></defs>'
    content += '<use xlink:href="#p" x="1"/><use xlink:href="#a"/></svg>'
    found = [each.attrib for each in Xml.fromstring(safe(content.encode())).iter("{http://www.w3.org/2000/svg}use")]
    assert [each.get("{http://www.w3.org/1999/xlink}href") for each in found] == ["#p"] * 3


def test_a_figure_of_matplotlib_keeps_all_that_it_shows() -> None:
    figure = Figure()
    ax = figure.subplots()
    ax.plot([1, 2, 3], "o-", label="a & b")
    ax.imshow([[0, 1], [1, 0]], extent=(0, 1, 0, 1))
    ax.legend()
    drawn = io.BytesIO()
    with mpl.rc_context({"svg.fonttype": "none"}):
        figure.savefig(drawn, format="svg")
    before, after = Xml.fromstring(drawn.getvalue()), Xml.fromstring(safe(drawn.getvalue()))
    ignored = re.compile(r".*(metadata|RDF|Work|type|format|creator|Agent|title|style|date)$")
    old = [(each.tag, each.attrib) for each in before.iter() if not ignored.match(each.tag)]
    new = [(each.tag, each.attrib) for each in after.iter()]
    assert [tag for tag, _ in new] == [tag for tag, _ in old]
    assert [attributes for _, attributes in new[1:]] == [attributes for _, attributes in old[1:]]
    assert {tag.rpartition("}")[2] for tag, _ in new} >= {"path", "use", "image", "text", "clipPath"}
