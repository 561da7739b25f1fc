"""How fast files of a client arrived at a server that requested them, from both traces; pure."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from quicsat.traces.columns import Trace
from quicsat.traces.streams import new_bytes


def upload_values(client: Trace, server: Trace, sizes: Iterable[int]) -> dict[str, float]:
    """Time from the client's first packet until the last new stream byte of the client arrived, and the goodput.

    The traces have one clock. ``sizes``: bytes of the files. Empty if the streams that could be decrypted do not have
    so many, as if the files came in datagrams.
    """
    size, packets, new = sum(sizes), server.frames.packet, new_bytes(server)
    rows = np.flatnonzero(~server.from_server[packets] & (new > 0))
    sent = np.flatnonzero(~client.from_server)
    if not len(sent) or not size or new[rows].sum() < size:
        return {}
    time = server.absolute(int(packets[rows[-1]])) - client.absolute(int(sent[0]))
    return {"upload_time": time, "upload_goodput": 8 * size / time}
