"""Tests over WebTransport: what client and server do in a session, and where the files are."""

from enum import StrEnum

from quicsat.model.role import Role

NEGOTIATED = "negotiated_protocol.txt"
"""File in which both sides write the application protocol of the session."""


class WebTransport(StrEnum):
    """What happens in the session that a client establishes, in the words of the QUIC Interop Runner."""

    HANDSHAKE = "handshake"
    """Both sides agree on an application protocol."""
    RECEIVE = "receive"
    """The client requests files from the server."""
    SEND = "send"
    """The server requests files from the client."""

    @property
    def requester(self) -> Role | None:
        """The side that requests and stores the files; None if there are none."""
        return {WebTransport.RECEIVE: Role.CLIENT, WebTransport.SEND: Role.SERVER}.get(self)

    @property
    def storing(self) -> tuple[Role, ...]:
        """The sides that store files."""
        return (Role.CLIENT, Role.SERVER) if self.requester is None else (self.requester,)
