"""Two real ends of TLS in memory: what they send each other, and the lines of their key log."""

from __future__ import annotations

import ssl
from dataclasses import dataclass, field
from pathlib import Path

from tests.certificates import certificates


@dataclass
class TlsPeers:
    """A client and a server of TLS, whose handshake is complete."""

    folder: Path
    """A new one, for certificates and the key log."""
    version: ssl.TLSVersion = ssl.TLSVersion.TLSv1_3
    ciphers: str = ""
    """Of TLS 1.2; empty: the program's choice."""
    sent: list[tuple[bool, bytes]] = field(default_factory=list)
    """Whether the server sent it, and the bytes on the wire, in order."""
    earlier: TlsPeers | None = None
    """Those whose session the client resumes, in the same folder, after the server has sent something."""

    _contexts: tuple[ssl.SSLContext, ssl.SSLContext] = field(init=False)
    _ends: dict[bool, ssl.SSLObject] = field(init=False)

    def __post_init__(self) -> None:
        self._contexts = self._new_contexts() if self.earlier is None else self.earlier._contexts
        server, client = self._contexts
        self._pipes = {True: (ssl.MemoryBIO(), ssl.MemoryBIO()), False: (ssl.MemoryBIO(), ssl.MemoryBIO())}
        self._ends = {
            True: server.wrap_bio(*self._pipes[True], server_side=True),
            False: client.wrap_bio(
                *self._pipes[False],
                server_hostname="127.0.0.1",
                session=None if self.earlier is None else self.earlier._ends[False].session,
            ),
        }
        waiting = [False, True]
        while waiting:
            for side in list(waiting):
                try:
                    self._ends[side].do_handshake()
                    waiting.remove(side)
                except ssl.SSLWantReadError:
                    pass
                self._carry(side)

    def _new_contexts(self) -> tuple[ssl.SSLContext, ssl.SSLContext]:
        """Of the server and of the client."""
        pem = certificates(self.folder, "127.0.0.1")
        server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        server.load_cert_chain(pem / "server.pem", pem / "server.key")
        client = ssl.create_default_context(cafile=str(pem / "ca.pem"))
        client.keylog_filename = str(pem / "keys.log")
        for context in (server, client):
            context.minimum_version = context.maximum_version = self.version
            if self.ciphers:
                context.set_ciphers(self.ciphers)
        return server, client

    @property
    def keys(self) -> tuple[str, ...]:
        """Lines of the key log."""
        lines = (self.folder / "keys.log").read_text().splitlines()
        return tuple(line for line in lines if not line.startswith("#"))

    def send(self, content: bytes, *, from_server: bool) -> None:
        """Send application data, which may become several records."""
        self._ends[from_server].write(content)
        self._carry(from_server)
        self._ends[not from_server].read(len(content))

    def _carry(self, side: bool) -> None:
        wire = self._pipes[side][1].read()
        if wire:
            self._pipes[not side][0].write(wire)
            self.sent.append((side, wire))
