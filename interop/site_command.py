"""What `./run.py site` does, and its options."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path

from interop.units import byte_size

PORT = 8000


def add_options(parser: argparse.ArgumentParser, root: Path) -> None:
    """The options of the command; ``root``: the checkout."""
    parser.add_argument("directories", type=Path, nargs="*", metavar="DIR", help="campaigns, or what holds them")
    parser.add_argument("-o", "--output", type=Path, default=root / "site", metavar="SITE", help="default: site")
    parser.add_argument("--files", action="store_true", help="take traces, key logs, qlogs and whole logs into it")
    parser.add_argument("--serve", nargs="?", type=int, const=PORT, metavar="PORT", help="then show it on this machine")


def carry_out(options: argparse.Namespace, root: Path, say: Callable[[str], None]) -> str:
    """Build the site and, if asked, show it until Ctrl-C; one line that tells what was built."""
    from interop.site import publish, serve

    request = publish.Request(options.directories or [root / "results"], options.output, root, files=options.files)
    built = publish.build(request, say)
    told = f"{options.output}: {built.pages} pages of {built.campaigns} campaigns, {byte_size(built.size)}"
    if options.serve is not None:
        with serve.server(options.output, options.serve) as address:
            say(f"{told}\nshowing it at {address} until Ctrl-C")
            serve.wait()
    return told
