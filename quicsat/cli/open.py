"""``./run.py open``: serves the newest website on this machine, and opens it in a browser."""

import os
import webbrowser
from pathlib import Path

from quicsat.cli import console
from quicsat.cli import options as shared
from quicsat.cli.exit_status import ExitStatus
from quicsat.cli.program import CommandOptions, Program, option
from quicsat.model.errors import InputError
from quicsat.model.stored_files import entries
from quicsat.model.text import command_line
from quicsat.site.serve import PORT

GROUP = "Publish", 2
SUMMARY = "Serve the newest website on this machine, and open it in a browser."
DESCRIPTION = (
    "Serve the newest website in this folder on this machine, and print its address. If there is a graphical "
    "desktop, also open the website in a browser. Press Ctrl-C to stop. To build a website, use `./run.py site`."
)
EXAMPLES = ("open", "open /var/www/quic --port 8001")
DESKTOP = ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER")
"""Variables of the environment of which a graphical desktop, or a user with a browser for terminals, sets one."""


class Options(CommandOptions, group="output"):
    """The options of the command."""

    site: Path | None = option(
        type=Path, nargs="?", metavar="SITE",
        help="Directory of the website (default: the newest one in this folder; example: site).",
    )  # fmt: skip
    port: int = option(
        "--port", parse=shared.port, default=PORT, metavar="PORT",
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
