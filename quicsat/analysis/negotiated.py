"""The handshake of a run, out of the client's trace."""

from __future__ import annotations

from collections.abc import Mapping

from quicsat.model.negotiated import DEFAULTS, Negotiated
from quicsat.traces.columns import Form, Trace


def negotiated(client: Trace) -> Negotiated | None:
    """What the first connection in the client's trace agreed on; None if there is none.

    The version is that of the server's last packet with a long header, as the version may change in a handshake.
    """
    if not client.connections:
        return None
    first = client.connections[0]
    mine = client.from_server & (client.connection == 0) & (client.form == Form.HANDSHAKE)
    versions = client.version[mine] if mine.any() else client.version[client.version > 0]
    return Negotiated(
        version=int(versions[-1]) if len(versions) else 0,
        cipher=first.cipher,
        alpn=first.alpn,
        resumed=first.resumed,
        client=_known(first.client_parameters),
        server=_known(first.server_parameters),
    )


def _known(sent: Mapping[str, int | str]) -> dict[str, int] | None:
    """The parameters in ``DEFAULTS``; None if none at all was sent, which means that the handshake was not read."""
    numbers = {name: value for name, value in sent.items() if name in DEFAULTS and isinstance(value, int)}
    return numbers if sent else None
