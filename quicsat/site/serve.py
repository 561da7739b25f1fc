"""Shows a site on this machine only, to look at it before it is published."""

import os
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http import HTTPStatus
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import BinaryIO

from quicsat.model.errors import InputError

PORT = 8000
"""That of a website which is served on this machine, unless the user names another."""
QVIS = "https://qvis.quictools.info"
"""The origin whose pages may read qlogs."""
PAGE_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "base-uri 'self'; form-action 'none'; frame-ancestors 'none'"
)
"""Content security policy of pages."""
FILE_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; sandbox"
"""Content security policy of all other files: whatever a browser takes them for, no script runs."""
TYPES = {
    "": "application/octet-stream", ".bin": "application/octet-stream", ".css": "text/css; charset=utf-8",
    ".csv": "text/csv; charset=utf-8", ".html": "text/html; charset=utf-8", ".js": "text/javascript; charset=utf-8",
    ".json": "application/json", ".md": "text/plain; charset=utf-8", ".png": "image/png", ".svg": "image/svg+xml",
    ".tex": "text/plain; charset=utf-8", ".txt": "text/plain; charset=utf-8", ".xml": "application/atom+xml",
}  # fmt: skip
"""Type of each suffix in a site; the first one is that of all others."""
_HERE = re.compile(r"(127\.0\.0\.1|localhost)(:[0-9]+)?", re.IGNORECASE)
"""Hosts in requests. Any other is the name of a foreign site, which may lead to this machine so as to read this one."""


class _Handler(SimpleHTTPRequestHandler):
    cache_control = "no-store"
    """Nothing is kept by the browser, for the next build may be seconds away."""
    extensions_map = TYPES

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing: every page view would be a line."""

    def send_head(self) -> BinaryIO | None:
        """Refuse requests for other hosts, and what is no page or file of the site."""
        hosts = self.headers.get_all("Host", [""])
        if len(hosts) > 1:  # servers and proxies differ in which one counts
            self.send_error(HTTPStatus.BAD_REQUEST)
        elif not _HERE.fullmatch(hosts[0]):
            self.send_error(HTTPStatus.MISDIRECTED_REQUEST)
        elif not self._is_ours():
            self.send_error(HTTPStatus.NOT_FOUND)
        else:
            return super().send_head()
        return None

    def _is_ours(self) -> bool:
        """Whether the address leads to a regular file or a folder with a page, through no link."""
        try:
            path = Path(self.translate_path(self.path))
            place = path / "index.html" if path.is_dir() else path
            return place.is_file() and os.path.realpath(place) == str(place)
        except (OSError, ValueError):  # a null character, or a name that is too long
            return False

    def end_headers(self) -> None:
        """Add the headers that the configurations in web/servers/ have, too."""
        address = re.split("[?#]", getattr(self, "path", ""))[0]  # a request that is none has no path
        is_page = address.endswith(("/", ".html"))
        self.send_header("Cache-Control", self.cache_control)
        self.send_header("X-Content-Type-Options", "nosniff")
        self.send_header("Referrer-Policy", "no-referrer")
        self.send_header("Content-Security-Policy", PAGE_POLICY if is_page else FILE_POLICY)
        if address.endswith("qlog.json"):
            self.send_header("Access-Control-Allow-Origin", QVIS)
        super().end_headers()


class _Server(ThreadingHTTPServer):
    def handle_error(self, request: object, client_address: object) -> None:
        """Say nothing: a browser that goes away ends a request with an error, too."""


class _Kept(_Handler):
    cache_control = "max-age=600"
    """As most hosts of static sites."""


@contextmanager
def server(site: Path, port: int = 0, *, kept: bool = False) -> Iterator[str]:
    """Serve ``site`` at the address that this gives; port 0 is any free one. InputError if the port is taken.

    ``kept``: the browser may keep files, of a site that does not change.
    """
    handler = _Kept if kept else _Handler
    try:
        listening = _Server(("127.0.0.1", port), partial(handler, directory=os.path.realpath(site)))
    except OSError as error:
        raise InputError(
            f"port {port}: cannot be listened on: {error.strerror}. Name another port, for example 8001."
        ) from error
    thread = threading.Thread(target=listening.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{listening.server_address[1]}/"
    finally:
        listening.shutdown()
        listening.server_close()
        thread.join()


def wait() -> None:
    """Until Ctrl-C."""
    threading.Event().wait()
