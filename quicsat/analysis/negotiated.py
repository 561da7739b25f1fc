"""The handshake of a run, out of the client's trace; pure."""

from __future__ import annotations

from collections.abc import Mapping

from quicsat.model.negotiated import DEFAULTS, EarlyData, Negotiated
from quicsat.traces.columns import Connection, Form, Trace
from quicsat.traces.tcp import SYN, TcpTrace


def negotiated(client: Trace | TcpTrace, connection: int = 0) -> Negotiated | None:
    """What a connection in the client's trace agreed on; None if it is not there, or if nothing could be read over TCP.

    The version is that of the server's last packet with a long header, as the version may change in a handshake.
    """
    if isinstance(client, TcpTrace):
        return _over_tcp(client, connection)
    if connection >= len(client.connections):
        return None
    found = client.connections[connection]
    mine = client.from_server & (client.connection == connection) & (client.form == Form.HANDSHAKE)
    versions = client.version[mine] if mine.any() else client.version[client.version > 0]
    return Negotiated(
        version=int(versions[-1]) if len(versions) else 0,
        cipher=found.cipher,
        alpn=found.alpn,
        resumed=found.resumed,
        client=_known(found.client_parameters),
        server=_known(found.server_parameters),
        early_data=_early_data(found),
    )


def _over_tcp(client: TcpTrace, connection: int) -> Negotiated | None:
    found = client.handshakes[connection] if connection < len(client.handshakes) else None
    if found is None or not found.cipher:
        return None
    return Negotiated(
        version=client.tls,
        cipher=found.cipher,
        alpn=found.alpn,
        resumed=found.resumed,
        early_data=_early_data(found),
        fast_open=_fast_open(client, connection),
    )


def _early_data(found: Connection) -> EarlyData | None:
    """None if the server's answer, which its protocol accompanies (RFC 8446, section 4.3.1), could not be read."""
    return _outcome(found.early_data_offered, found.early_data) if found.alpn or not found.early_data_offered else None


def _fast_open(client: TcpTrace, connection: int) -> EarlyData:
    """Whether the client's SYN had data, and whether the server's SYN acknowledged them (RFC 7413, section 4.2)."""
    syns = (client.connection == connection) & (client.flags & SYN > 0)
    early = bool((syns & ~client.from_server & (client.length > 0)).any())
    return _outcome(early, bool((client.acknowledged[syns & client.from_server] > 0).any()))


def _outcome(made: bool, accepted: bool) -> EarlyData:
    return EarlyData.NONE if not made else EarlyData.ACCEPTED if accepted else EarlyData.REFUSED


def _known(sent: Mapping[str, int | str]) -> dict[str, int] | None:
    """The parameters in ``DEFAULTS``; None if none at all was sent, which means that the handshake was not read."""
    numbers = {name: value for name, value in sent.items() if name in DEFAULTS and isinstance(value, int)}
    return numbers if sent else None
