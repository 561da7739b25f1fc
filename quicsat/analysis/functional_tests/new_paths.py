"""BP, BA and CM: the client's or the server's address changes, and the new path is validated; pure."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from quicsat.analysis.functional_tests.ipv6 import ends
from quicsat.analysis.functional_tests.rule import Observation, closed, connections, rule, sealed
from quicsat.analysis.run_outcome import failed, frames_of
from quicsat.model.arrays import Flags, Integers
from quicsat.model.outcomes import Check, ErrorCode, Verdict
from quicsat.model.text import counted
from quicsat.traces.columns import Form, Frame, Trace

TOO_LATE = 3
"""Round trips before the end of a trace in which a path is too new to be judged."""
PROBING = (Frame.NEW_CONNECTION_ID, Frame.PATH_CHALLENGE, Frame.PATH_RESPONSE)
"""Frames that, with PADDING, may probe a path before anything else is sent there (RFC 9000, section 9.1)."""


@rule(
    Check.REBINDING,
    requirement=(
        "on every new path, the server sends PATH_CHALLENGE frames, and the client responds to at least one; the "
        "server uses a new path for more than [probing](#cm-migration); paths that appear in the last three round "
        "trips do not count"
    ),
    rfc="9000: 8.2, 9.3",
    qir="requires the challenge in the first packet of the path, and a response to the first challenge in this packet",
    needs_keys=True,
)
def rebinding(seen: Observation) -> Verdict | None:
    return connections(seen) or validated(seen)


@rule(
    Check.ADDRESS_REBINDING,
    requirement="the same as for BP, and the client's address changes",
    rfc="9000: 8.2, 9.3",
    qir="the same as for BP",
    needs_keys=True,
)
def address_rebinding(seen: Observation) -> Verdict | None:
    return connections(seen) or new_host(seen.server) or validated(seen)


@rule(
    Check.MIGRATION,
    requirement=(
        "the client [moves](#cm-migration) to a different address of the server; no connection ID is used on two "
        "paths; all other requirements are the same as for BP"
    ),
    rfc="9000: 9.1, 9.5, 9.6",
    qir="accepts any change in the path; compares only the connection IDs of the first packets on successive paths",
    needs_keys=True,
)
def migration(seen: Observation) -> Verdict | None:
    return connections(seen) or migrated(seen)


def migrated(seen: Observation) -> Verdict | None:
    """Whether the transfer moved to another address of the server's, with an unused connection id, and was challenged.

    For upstream any path may be new, and it compares few connection ids.
    """
    if seen.upstream:
        return validated(seen) or _same_id_at_first(seen.client)
    return _moved(seen.client) or _reused_ids(seen.client) or validated(seen)


def validated(seen: Observation) -> Verdict | None:
    """Whether the server challenged the client at each new address, was answered, and went on there."""
    if seen.upstream:
        return _challenged_at_once(seen.client, seen.server)
    return _each_validated(seen.client, seen.server, seen.case.link.round_trip_delay)


def new_host(server: Trace) -> Verdict | None:
    """Whether the server sent to more than one host part of the client's address."""
    hosts = {ends(server.paths[path])[0] for path in set(server.path[server.from_server].tolist())}
    if len(hosts) > 1:
        return None
    reason = f"The server sent to one address of the client only ({', '.join(sorted(hosts))})."
    return failed(ErrorCode.PATH_UNCHANGED, reason)


def _moved(client: Trace) -> Verdict | None:
    """Whether the client ended up at another address of the server's, and a part of the response came from there.

    A client that only probes an address has not moved to it (section 9.1): once it has validated the address, it sends
    everything there, and the server answers from there (sections 9.6.1 and 9.6.2).
    """
    servers = [ends(path)[2:] for path in client.paths]
    own = np.flatnonzero(~client.from_server)
    reached = {servers[path] for path in client.path[own].tolist()}
    if len(reached) < 2:
        names = " port ".join(next(iter(reached), ("none",)))
        return failed(ErrorCode.PATH_UNCHANGED, f"The client sent to one address of the server only ({names}).")
    packets = own[client.form[own] == Form.ONE_RTT]
    if not client.decrypted[packets].any():
        return sealed("the client's 1-RTT packets")
    elsewhere = np.array([each != servers[client.path[own[0]]] for each in servers])[client.path]
    moving = packets[~_probing(client)[packets]]
    if not elsewhere[moving].any():
        there = frames_of(client, packets[elsewhere[packets]])
        return failed(ErrorCode.PATH_UNCHANGED, f"The client only probed another address of the server ({there}).")
    if not elsewhere[moving[-1]]:
        back = frames_of(client, moving[-1:])
        return failed(ErrorCode.PATH_UNCHANGED, f"The client returned to the server's first address ({back}).")
    response = client.frames.packet[client.frames.length > 0]
    if not (client.from_server & elsewhere)[response].any():
        return failed(ErrorCode.PATH_UNCHANGED, "No part of the response came from another address of the server.")
    return None


def _probing(trace: Trace) -> Flags:
    """Packets that only probe a path."""
    probing = np.isin(trace.signals.kind, PROBING)
    only = np.zeros(len(trace), dtype=np.bool_)
    only[trace.signals.packet[probing]] = True
    for others in (trace.frames.packet, trace.crypto.packet, trace.acks.packet, trace.signals.packet[~probing]):
        only[others] = False
    return only


def _reused_ids(client: Trace) -> Verdict | None:
    """Whether a connection id of the server's was used on two paths."""
    owner: dict[int, int] = {}
    for row in np.flatnonzero(~client.from_server & np.isin(client.form, (Form.HANDSHAKE, Form.ONE_RTT))).tolist():
        path = int(client.path[row])
        if owner.setdefault(int(client.dcid[row]), path) != path:
            reason = f"The client used a connection id on a second path (frame {client.frame[row]})."
            return failed(ErrorCode.CONNECTION_ID_REUSED, reason)
    return None


def _each_validated(client: Trace, server: Trace, round_trip: float) -> Verdict | None:
    """Whether the server challenged each path but the first, the client answered, and the server went on to use one.

    The challenge need not come in the first packet. A path that was new when all was over is not judged.
    """
    sent = np.flatnonzero(server.from_server)
    paths = list(dict.fromkeys(server.path[sent].tolist()))
    if len(paths) < 2:
        return _one_path(len(paths))
    if not (server.decrypted & server.from_server & (server.form == Form.ONE_RTT)).any():
        return sealed("the server's 1-RTT packets")
    if closed(client, from_server=False):
        return sealed("the client's 1-RTT packets")
    answers = _answers(client)
    challenges = _signals(server, Frame.PATH_CHALLENGE, from_server=True)
    probing, used = _probing(server), False
    for path in paths[1:]:
        rows = sent[server.path[sent] == path]
        here = [(row, text) for row, text in challenges if server.path[row] == path]
        if server.time[rows[0]] > server.time[-1] - TOO_LATE * round_trip:
            continue
        if not here and probing[rows].all():  # it only answered probes of the client's (section 8.2.2)
            continue
        verdict = _challenge(server, rows, here, any(server.texts[text] in answers for _, text in here))
        if verdict is not None:
            return verdict
        used |= not probing[rows].all()
    if used:
        return None
    later = frames_of(server, sent[server.path[sent] != paths[0]])
    reason = f"The server only probed new paths, or did not use them before the end of the trace ({later})."
    return failed(ErrorCode.PATH_UNCHANGED, reason)


def _challenge(server: Trace, rows: Integers, here: list[tuple[int, int]], answered: bool) -> Verdict | None:
    """Whether a new path, on which the server sent ``rows``, has challenges (``here``), and they were ``answered``."""
    where = server.paths[server.path[rows[0]]].split(" ")[0]
    if not here:
        reason = (
            f"The server sent {counted(len(rows), 'packet')} to {where} without a PATH_CHALLENGE "
            f"({frames_of(server, rows)})."
        )
        return failed(ErrorCode.PATH_CHALLENGE_MISSING, reason)
    if answered:
        return None
    places = frames_of(server, np.array([row for row, _ in here], dtype=np.int64))
    reason = f"The client did not answer the PATH_CHALLENGE to {where} ({places})."
    return failed(ErrorCode.PATH_RESPONSE_MISSING, reason)


def _signals(trace: Trace, kind: Frame, *, from_server: bool) -> list[tuple[int, int]]:
    """Packet and text of each frame of a kind."""
    rows = np.flatnonzero((trace.signals.kind == kind) & (trace.from_server[trace.signals.packet] == from_server))
    return list(zip(trace.signals.packet[rows].tolist(), trace.signals.text[rows].tolist(), strict=True))


def _challenged_at_once(client: Trace, server: Trace) -> Verdict | None:
    """Whether the server's first packet on each new path has a PATH_CHALLENGE, the first of which was answered."""
    sent = np.flatnonzero(server.from_server)
    paths = list(dict.fromkeys(server.path[sent].tolist()))
    if len(paths) < 2:
        return _one_path(len(paths))
    answers = _answers(client)
    challenges = _signals(server, Frame.PATH_CHALLENGE, from_server=True)
    for path in paths[1:]:
        rows = sent[server.path[sent] == path]
        here = [(row, text) for row, text in challenges if row == rows[0]][:1]
        verdict = _challenge(server, rows, here, any(server.texts[text] in answers for _, text in here))
        if verdict is not None:
            return verdict
    return None


def _same_id_at_first(client: Trace) -> Verdict | None:
    """Whether the client's first packet on a path has the connection id of its first packet on the path before.

    On the first path, this packet is an Initial, to an id that the client invented.
    """
    rows = np.flatnonzero(~client.from_server & (client.size > 0))
    _, places = np.unique(client.path[rows], return_index=True)
    firsts = rows[np.sort(places)].tolist()
    for before, row in pairwise(firsts):
        if client.dcid[before] == client.dcid[row]:
            reason = f"The client used a connection id on a second path (frame {client.frame[row]})."
            return failed(ErrorCode.CONNECTION_ID_REUSED, reason)
    return None


def _one_path(number: int) -> Verdict:
    return failed(ErrorCode.PATH_UNCHANGED, f"The server sent on {number} path only; it never changed.")


def _answers(client: Trace) -> set[str]:
    """The data of the client's PATH_RESPONSE frames."""
    return {client.texts[text] for _, text in _signals(client, Frame.PATH_RESPONSE, from_server=False)}
