"""Contents of the objects of a page: a browser that loads the first one asks for all others, as the workload says."""

import random
from collections.abc import Sequence

from quicsat.model.workload import ObjectType, Workload

GIF = bytes.fromhex("47494638396101000100800000000000ffffff21f90401000000002c00000000010001000002024401003b")
"""An image of one pixel; browsers take what follows it as part of the file."""
SUFFIXES = {
    ObjectType.HTML: ".html",
    ObjectType.CSS: ".css",
    ObjectType.SCRIPT: ".js",
    ObjectType.FONT: ".gif",  # browsers load fonts only where text needs them, and refuse those that they cannot read
    ObjectType.IMAGE: ".gif",
}


def page_object(place: int, size: int, workload: Workload, names: Sequence[str], numbers: random.Random) -> bytes:
    """The object at ``place`` (from 0) of the page of ``workload``, ``size`` bytes; ``names``: of all its objects.

    Raises ValueError if it is too small to name those that follow it.
    """
    types, after = workload.types, workload.after
    kind = types[place]
    followers = [(types[other], names[other], other) for other in range(len(types)) if after[other] == place + 1]
    if kind is ObjectType.HTML:
        begin, end = _html(followers)
    elif kind is ObjectType.CSS:
        begin, end = _css(place, followers)
    elif kind is ObjectType.SCRIPT:
        begin, end = _script(followers)
    else:
        rest = size - len(GIF)
        if rest < 0 or followers:
            raise ValueError(f"an image of {size} bytes cannot be followed by {len(followers)} objects.")
        return GIF + numbers.randbytes(rest)
    rest = size - len(begin) - len(end)
    if rest < 0:
        raise ValueError(f"{size} bytes are too few to name {len(followers)} objects.")
    return begin + numbers.randbytes(rest // 2 + 1).hex()[:rest].encode() + end


def _html(followers: Sequence[tuple[ObjectType, str, int]]) -> tuple[bytes, bytes]:
    head, body = ['<link rel="icon" href="data:,">'], []
    for kind, name, place in followers:
        if kind is ObjectType.CSS:
            head.append(f'<link rel="stylesheet" href="{name}">')
            body.append(f'<div id="s{place}">.</div>')
        elif kind is ObjectType.HTML:
            body.append(f'<iframe src="{name}"></iframe>')
        elif kind is ObjectType.SCRIPT:
            body.append(f'<script src="{name}"></script>')
        else:
            body.append(f'<img src="{name}">')
    # Without a document type, browsers take style sheets from servers that do not say what they are.
    text = f"<html><head>{''.join(head)}</head><body>{''.join(body)}<!--"
    return text.encode(), b"--></body></html>\n"


def _css(place: int, followers: Sequence[tuple[ObjectType, str, int]]) -> tuple[bytes, bytes]:
    imports = "".join(f'@import "{name}";' for kind, name, _ in followers if kind is ObjectType.CSS)
    images = ",".join(f"url({name})" for kind, name, _ in followers if kind is not ObjectType.CSS)
    rule = f"#s{place}{{background-image:{images}}}" if images else ""
    return f"{imports}{rule}/*".encode(), b"*/\n"


def _script(followers: Sequence[tuple[ObjectType, str, int]]) -> tuple[bytes, bytes]:
    tags = {ObjectType.SCRIPT: "script", ObjectType.HTML: "iframe"}
    lines = [
        f'e=document.createElement("{tags.get(kind, "img")}");e.src="{name}";document.body.append(e);'
        for kind, name, _ in followers
    ]
    return f"{{let e;{''.join(lines)}}}/*".encode(), b"*/\n"
