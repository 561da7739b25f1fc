"""``./run.py open``: serves the newest website on this machine, and opens it in a browser."""

from __future__ import annotations

import os
import webbrowser
from pathlib import Path
from typing import TYPE_CHECKING

from quicsat.cli import console
from quicsat.cli.exit_status import ExitStatus
from quicsat.cli.options import port
from quicsat.cli.program import CommandOptions, Program
from quicsat.model.errors import InputError
from quicsat.model.stored_files import entries
from quicsat.model.text import command_line
from quicsat.site.serve import PORT

if TYPE_CHECKING:
    from quicsat.cli.parser import Parser

DESCRIPTION = (
    "Serve the newest website in this folder on this machine, and print its address. If there is a graphical "
    "desktop, also open the website in a browser. Press Ctrl-C to stop. To build a website, use `./run.py site`."
)
EXAMPLES = ("open", "open /var/www/quic --port 8001")
DESKTOP = ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER")
"""Variables of the environment of which a graphical desktop, or a user with a browser for terminals, sets one."""


class Options(CommandOptions):
    """The options of the command."""

    site: Path | None
    port: int


def add_options(parser: Parser) -> None:
    """Declare the options of the command."""
    parser.add_argument(
        "site", type=Path, nargs="?", metavar="SITE",
        help="Directory of the website (default: the newest one in this folder; example: site).",
    )  # fmt: skip
    parser.add_argument_group("output").add_argument(
        "--port", type=port, default=PORT, metavar="PORT",
        help=f"Serve the website on this port (default: {PORT}; example: 8001).",
    )  # fmt: skip


def run(options: Options, program: Program) -> int:
    """Serve the site until Ctrl-C; InputError if there is none."""
    from quicsat.site import serve

    site = options.site or newest(program.root)
    if not is_site(site):
        raise InputError(
            f"{site}: is not a site made by quicsat. To build one: {command_line('site', 'results', '-o', site)}"
        )
    with serve.server(site, options.port) as address:
        console.show(address)
        console.message(f"Serving {site} until Ctrl-C")
        if any(os.environ.get(name) for name in DESKTOP):
            webbrowser.open(address)
        serve.wait()
    return ExitStatus.SUCCESS


def newest(root: Path) -> Path:
    """The site below ``root`` that was built last; InputError if there is none."""
    sites = [place for place in entries(root) if is_site(place)]
    if not sites:
        raise InputError(f"{root}: contains no site. To build one: ./run.py site results")
    return max(sites, key=lambda place: place.stat().st_mtime)


def is_site(place: Path) -> bool:
    """Whether a directory is a site."""
    from quicsat.site import made_files

    return bool(made_files.marker(place))
