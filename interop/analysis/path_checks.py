"""Checks of functional tests that look at the addresses between which packets travel; pure."""

from __future__ import annotations

from ipaddress import ip_address

import numpy as np

from interop.analysis.run_outcome import failed, frames_of
from interop.analysis.session_checks import sealed
from interop.model.arrays import Flags, Integers
from interop.model.outcomes import ErrorCode, Verdict
from interop.traces.columns import Form, Frame, Trace


def ends(path: str) -> tuple[str, str, str, str]:
    """``193.167.0.100:4433 fd00::1:443`` -> client's address and port, server's address and port."""
    client, server = (end.rpartition(":") for end in path.split(" "))
    return client[0], client[2], server[0], server[2]


def ipv6(client: Trace, server: Trace, *, upstream: bool = False) -> Verdict | None:
    """Whether all packets are of IPv6; upstream looks at what the server sends, where it sends it."""
    seen = ((server, server.from_server, "server's"),)
    everything = ((trace, np.ones(len(trace), dtype=np.bool_), side) for trace, side in _sides(client, server))
    for trace, chosen, side in seen if upstream else everything:
        rows = np.flatnonzero(chosen & is_ipv4(trace))
        if len(rows):
            reason = f"The {side} trace shows {len(rows)} packets of IPv4, the first in frame {trace.frame[rows[0]]}."
            return failed(ErrorCode.IPV4_USED, reason)
    return None


def _sides(client: Trace, server: Trace) -> tuple[tuple[Trace, str], ...]:
    return (client, "client's"), (server, "server's")


def is_ipv4(trace: Trace) -> Flags:
    """Which packets are of IPv4."""
    of_path = np.array([ip_address(ends(path)[2]).version == 4 for path in trace.paths], dtype=np.bool_)
    return of_path[trace.path] if len(trace) else np.zeros(0, dtype=np.bool_)


# ---- new paths ------------------------------------------------------------------------------

TOO_LATE = 3
"""Round trips before the end of a trace in which a path is too new to be judged."""


def rebinding(
    client: Trace, server: Trace, *, address: bool, round_trip: float, upstream: bool = False
) -> Verdict | None:
    """Whether the server challenged the client at each of its new addresses, and the client answered.

    RFC 9000, sections 9.3 and 8.2. ``address``: the client's host part has to change too, not only its port.
    """
    if address:
        hosts = {ends(server.paths[path])[0] for path in set(server.path[server.from_server].tolist())}
        if len(hosts) < 2:
            reason = f"The server sent to one address of the client only ({', '.join(sorted(hosts))})."
            return failed(ErrorCode.PATH_UNCHANGED, reason)
    return _validated(client, server, round_trip, upstream=upstream)


def migration(client: Trace, server: Trace, *, round_trip: float, upstream: bool = False) -> Verdict | None:
    """Whether the client moved to another address of the server's, with an unused connection id, and was challenged.

    RFC 9000, sections 9.5 and 9.6. Upstream looks at the first packet on each new path, whichever end has changed.
    """
    servers = {ends(client.paths[path])[2:] for path in set(client.path[~client.from_server].tolist())}
    if not upstream and len(servers) < 2:
        reason = f"The client sent to one address of the server only ({' port '.join(next(iter(servers), ('none',)))})."
        return failed(ErrorCode.PATH_UNCHANGED, reason)
    return _reused_ids(client, upstream=upstream) or _validated(client, server, round_trip, upstream=upstream)


def _reused_ids(client: Trace, *, upstream: bool) -> Verdict | None:
    """Whether a connection id of the server's was used on two paths."""
    rows = np.flatnonzero(~client.from_server & (client.form == Form.ONE_RTT))
    owner: dict[int, int] = {}
    met: set[int] = set()
    for row in rows.tolist():
        path, dcid = int(client.path[row]), int(client.dcid[row])
        if owner.setdefault(dcid, path) != path and not (upstream and path in met):
            reason = f"The client used a connection id on a second path (frame {client.frame[row]})."
            return failed(ErrorCode.CONNECTION_ID_REUSED, reason)
        met.add(path)
    return None


def _validated(client: Trace, server: Trace, round_trip: float, *, upstream: bool) -> Verdict | None:
    """Whether each path but the first was challenged by the server, and a challenge of each was answered.

    Upstream wants the challenge in the first packet on the path, and all of those answered. We let the server send
    other packets before it, and judge no path that was new when all was over.
    """
    sent = np.flatnonzero(server.from_server)
    paths = list(dict.fromkeys(server.path[sent].tolist()))
    if len(paths) < 2:
        return failed(ErrorCode.PATH_UNCHANGED, f"The server sent on {len(paths)} path only; it never changed.")
    if not (server.decrypted & server.from_server & (server.form == Form.ONE_RTT)).any():
        return sealed("the server's 1-RTT packets")
    answers = {client.texts[text] for _, text in _signals(client, Frame.PATH_RESPONSE, from_server=False)}
    challenges = _signals(server, Frame.PATH_CHALLENGE, from_server=True)
    for path in paths[1:]:
        rows = sent[server.path[sent] == path]
        if not upstream and server.time[rows[0]] > server.time[-1] - TOO_LATE * round_trip:
            continue
        verdict = _challenged(server, path, rows, challenges, answers, upstream=upstream)
        if verdict is not None:
            return verdict
    return None


def _challenged(
    server: Trace, path: int, rows: Integers, challenges: list[tuple[int, int]], answers: set[str], *, upstream: bool
) -> Verdict | None:
    where = server.paths[path].split(" ")[0]
    here = [(row, text) for row, text in challenges if server.path[row] == path]
    if upstream:
        here = [(row, text) for row, text in here if row == rows[0]]
    if not here:
        reason = f"The server sent {len(rows)} packets to {where} without a PATH_CHALLENGE ({frames_of(server, rows)})."
        return failed(ErrorCode.PATH_CHALLENGE_MISSING, reason)
    answered = [server.texts[text] in answers for _, text in here]
    if all(answered) if upstream else any(answered):
        return None
    places = frames_of(server, np.array([row for row, _ in here], dtype=np.int64))
    reason = f"The client did not answer the PATH_CHALLENGE to {where} ({places})."
    return failed(ErrorCode.PATH_RESPONSE_MISSING, reason)


def _signals(trace: Trace, kind: Frame, *, from_server: bool) -> list[tuple[int, int]]:
    """Packet and text of each frame of a kind."""
    rows = np.flatnonzero((trace.signals.kind == kind) & (trace.from_server[trace.signals.packet] == from_server))
    return list(zip(trace.signals.packet[rows].tolist(), trace.signals.text[rows].tolist(), strict=True))
