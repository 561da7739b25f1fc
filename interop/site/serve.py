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
    def log_message(self, format: str, *args: object) -> None:
        """Say nothing: every page view would be a line."""

    def end_headers(self) -> None:
        """Nothing is kept by the browser, for the next build may be seconds away."""
        self.send_header("Cache-Control", "no-store")
        self.send_header("X-Content-Type-Options", "nosniff")
        super().end_headers()


@contextmanager
def server(site: Path, port: int = 0) -> Iterator[str]:
    """Serve ``site`` at the address that this gives; port 0 is any free one. InputError if the port is taken."""
    try:
        listening = ThreadingHTTPServer(("127.0.0.1", port), partial(_Quiet, directory=str(site)))
    except (OSError, OverflowError) as error:
        raise InputError(
            f"port {port}: cannot be listened on: {error}. Name another port, for example 8001."
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
