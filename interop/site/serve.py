"""Shows a site on this machine only, to look at it before it is published."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from interop.model.errors import InputError


class _Quiet(SimpleHTTPRequestHandler):
    cache_control = "no-store"
    """Nothing is kept by the browser, for the next build may be seconds away."""

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing: every page view would be a line."""

    def end_headers(self) -> None:
        """Say whether the browser may keep the file, and that its type is the one that was sent."""
        self.send_header("Cache-Control", self.cache_control)
        self.send_header("X-Content-Type-Options", "nosniff")
        super().end_headers()


class _Kept(_Quiet):
    cache_control = "max-age=600"
    """As most hosts of static sites."""


@contextmanager
def server(site: Path, port: int = 0, *, kept: bool = False) -> Iterator[str]:
    """Serve ``site`` at the address that this gives; port 0 is any free one. InputError if the port is taken.

    ``kept``: the browser may keep files, of a site that does not change.
    """
    handler = _Kept if kept else _Quiet
    try:
        listening = ThreadingHTTPServer(("127.0.0.1", port), partial(handler, directory=str(site)))
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
