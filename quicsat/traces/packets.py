"""Takes UDP payloads apart into QUIC packets and their frames, decrypted with the secrets of a key log.

RFC 9000, sections 12 and 17; RFC 8999 for versions that we do not know. A dissector of our own, since those to be had
give the frames of coalesced packets in one list, do not follow a connection to a new path, lose the keys where a client
makes a new ClientHello after a Retry, and take several times as long.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from quicsat.model.bounds import LEAST_PACKETS
from quicsat.traces.columns import Form, Message, Trace
from quicsat.traces.connection_state import SPACES, ConnectionState, Secrets
from quicsat.traces.frames import RESET_TOKEN
from quicsat.traces.network import Segment
from quicsat.traces.packet_columns import CONNECTION, FORM, Packet, PacketColumns
from quicsat.traces.protection import SALTS, VERSION_2, unprotect
from quicsat.traces.records import MOST_CONNECTIONS, too_large
from quicsat.traces.tls import varint

FORMS = (Form.INITIAL, Form.ZERO_RTT, Form.HANDSHAKE, Form.RETRY)
"""By type code of QUIC version 1 (RFC 9000, section 17.2)."""
FORMS_2 = (Form.RETRY, Form.INITIAL, Form.ZERO_RTT, Form.HANDSHAKE)
"""By type code of QUIC version 2 (RFC 9369, section 3.2)."""
DEFERRED_LIMIT = 16 * 1024 * 1024
"""Bytes of packets kept until the end because their keys were not known when they came."""
RETRY_TAG = 16
FIXED_BIT = 0x40
"""Of a header's first byte; 1 unless the endpoints agreed on RFC 9287 (RFC 9000, section 17)."""
FAILURES, A_BEGINNING = 8, 20
"""Keys that may fail per packet that a trace may have, on average; a connection that does not begin takes the time of
so many."""
LONGEST_ID = 20
"""Bytes of a connection id (RFC 9000, section 17.2)."""
LEAST_RESET = 21
"""Bytes of the shortest stateless reset (RFC 9000, section 10.3)."""


class Deferred(NamedTuple):
    """A packet that could not be decrypted when it came."""

    row: int
    connection: ConnectionState
    from_server: bool
    largest: int
    """The largest number known when it came, of its direction and packet number space; -1 if there was none."""
    packet: Packet


class Dissector:
    """Takes the packets of one trace in the order of capture; ``trace`` gives the columns."""

    def __init__(self, secrets: Mapping[bytes, Secrets], name: str = "the trace", most: int = LEAST_PACKETS) -> None:
        """``name``: of the trace, for messages; ``most``: packets that it may have."""
        self._secrets = secrets
        self._name, self._most_failures = name, most * FAILURES
        self._failures = 0
        self._rows = PacketColumns(name, most)
        self._connections: list[ConnectionState] = []
        self._by_id: tuple[dict[bytes, ConnectionState], dict[bytes, ConnectionState]] = ({}, {})
        """Whom a destination connection id means: in packets to the server, and from it."""
        self._id_sizes: tuple[dict[int, None], dict[int, None]] = ({}, {})
        self._by_path: dict[str, ConnectionState] = {}
        self._deferred: list[Deferred] = []
        self._deferred_size = 0

    def add(self, time: int, frame: int, segment: Segment) -> None:
        """Take a datagram, captured ``time`` nanoseconds after 1970 as record number ``frame``."""
        payload, at, size = segment.payload, 0, segment.size
        end = len(payload)
        before: Packet | None = None
        while at < end:
            try:
                packet, at = self._header(segment, at, before)
            except IndexError:
                packet, at = Packet(Form.UNKNOWN, -1, b"", b"", b"", payload[at:], end - at), end
            if before is not None and not self._coalesced(segment, before, packet):
                break
            self._open(self._rows.packet(time, frame, segment, size, packet), segment, packet)
            size, before = 0, packet

    # ---- headers --------------------------------------------------------------------------

    def _coalesced(self, segment: Segment, before: Packet, packet: Packet) -> bool:
        """Whether what follows a packet in its datagram is another one, and not padding.

        Padding may have any content (RFC 9000, section 14.1). All packets of a datagram have the same destination
        connection id (section 12.2); those with long headers have a version that the connection can have. If the id is
        empty, the source, or the fixed bit of this packet or of the one before, which RFC 9287 changes, tells.
        """
        if packet.form is Form.UNKNOWN:  # cut, or no packet at all
            return packet.data[1:5] == before.version.to_bytes(4, "big")
        if packet.form is not Form.ONE_RTT and packet.version != before.version and packet.version not in SALTS:
            return False
        if packet.dcid:
            return packet.dcid == before.dcid or packet.dcid in self._by_id[segment.from_server]
        if before.dcid:
            return False
        same_source = packet.form is not Form.ONE_RTT and bool(packet.scid) and packet.scid == before.scid
        return same_source or bool(packet.data[0] & FIXED_BIT) or not before.data[0] & FIXED_BIT

    def _header(self, segment: Segment, start: int, before: Packet | None) -> tuple[Packet, int]:
        """The packet at ``start``, and where the next one begins; raises IndexError if it is cut."""
        data = segment.payload
        first = data[start]
        if not first & 0x80:
            known = before.dcid if before is not None else b""
            if not known or not data.startswith(known, start + 1):
                known = self._destination(segment, start + 1)
            return Packet(Form.ONE_RTT, -1, known, b"", b"", data[start:], 1 + len(known)), len(data)
        version = int.from_bytes(data[start + 1 : start + 5], "big")
        at = start + 6 + data[start + 5]
        dcid, size = data[start + 6 : at], data[at]
        scid, at = data[at + 1 : at + 1 + size], at + 1 + size
        if at > len(data):
            raise IndexError(at)
        if not version:
            return Packet(Form.VERSION_NEGOTIATION, 0, dcid, scid, data[at:], data[start:], 0), len(data)
        form = (FORMS_2 if version == VERSION_2 else FORMS)[first >> 4 & 3]
        if form is Form.RETRY:
            return Packet(form, version, dcid, scid, data[at:-RETRY_TAG], data[start:], 0), len(data)
        token = b""
        if form is Form.INITIAL:
            size, at = varint(data, at)
            token, at = data[at : at + size], at + size
        size, at = varint(data, at)
        return Packet(form, version, dcid, scid, token, data[start : at + size], at - start), at + size

    def _destination(self, segment: Segment, at: int) -> bytes:
        """The connection id of a short header, whose length is not told there."""
        known = self._by_id[segment.from_server]
        for size in self._id_sizes[segment.from_server]:
            if (candidate := segment.payload[at : at + size]) in known:
                return candidate
        connection = self._by_path.get(segment.path)
        return segment.payload[at : at + (connection.id_sizes[segment.from_server] if connection else 0)]

    def _know(self, connection: ConnectionState, connection_id: bytes, *, from_server: bool) -> None:
        """Packets of that direction with this destination belong to the connection."""
        if 0 < len(connection_id) <= LONGEST_ID:
            self._by_id[from_server][connection_id] = connection
            self._id_sizes[from_server][len(connection_id)] = None

    # ---- packets --------------------------------------------------------------------------

    def _open(self, row: int, segment: Segment, packet: Packet) -> None:
        """Find the connection of the packet in a row, and decrypt it with that one's keys."""
        form, from_server = packet.form, segment.from_server
        connection = self._by_id[from_server].get(packet.dcid)
        if connection is None and (from_server or form is not Form.INITIAL):
            connection = self._by_path.get(segment.path)
            if connection is None and form is Form.ONE_RTT and self._connections:
                connection = self._connections[-1]
        if connection is None and form is Form.INITIAL and not from_server:
            # To an unknown id: a new connection, or an id of a NEW_CONNECTION_ID frame that could not be read yet.
            connection = self._begin(packet) or self._by_path.get(segment.path)
        if connection is None:
            return
        self._by_path[segment.path] = connection
        self._rows.set(row, CONNECTION, connection.index)
        if form is Form.RETRY:
            connection.retry(packet.scid)
            self._know(connection, packet.scid, from_server=False)
        elif form in SPACES:
            if form is Form.INITIAL and not from_server:
                connection.began_again(packet.dcid)
            largest = connection.largest[SPACES[form]][from_server]
            if self._decrypt(connection, row, from_server, packet, largest) is None:
                self._defer(Deferred(row, connection, from_server, largest, packet))

    def _begin(self, packet: Packet) -> ConnectionState | None:
        """A new connection, if this Initial is truly its first."""
        connection = ConnectionState(len(self._connections), packet.version, packet.dcid)
        keys = connection.initial(packet.version, from_server=False)
        if not any(unprotect(packet.data, packet.payload, each, -1) for each in keys):
            self._failed(A_BEGINNING)
            return None
        if len(self._connections) == MOST_CONNECTIONS:
            raise too_large(self._name, MOST_CONNECTIONS, "connections")
        self._connections.append(connection)
        self._know(connection, packet.dcid, from_server=False)
        return connection

    def _decrypt(
        self, connection: ConnectionState, row: int, from_server: bool, packet: Packet, largest: int
    ) -> int | None:
        """The packet's number if it could be decrypted, and then all that it says is taken down; else None.

        ``largest`` is the largest number before it in its direction and space: a packet's number is cut to the bits
        that tell it from those (RFC 9000, appendix A.3).
        """
        form, space = packet.form, SPACES[packet.form]
        for keys in connection.keys(form, packet.version, self._secrets, from_server=from_server):
            found = unprotect(packet.data, packet.payload, keys, largest)
            if found is None:
                self._failed(1)
                continue
            number, first, frames = found
            connection.opened(form, packet.version, keys, number, from_server=from_server)
            phase = first >> 2 & 1 if form is Form.ONE_RTT else -1
            self._rows.opened(row, number, phase, keys.generation)
            if form is not Form.ONE_RTT:
                self._know(connection, packet.scid, from_server=not from_server)
                connection.id_sizes[not from_server] = len(packet.scid)
            self._frames(connection, row, from_server, space, frames)
            return number
        return None

    def _failed(self, keys: int) -> None:
        """So many keys did not open a packet. Raises HarnessFault (trace-limit) if all were too many."""
        self._failures += keys
        if self._failures > self._most_failures:
            raise too_large(self._name, self._most_failures, "pairs of a packet and a key that does not open it")

    def _frames(self, connection: ConnectionState, row: int, from_server: bool, space: int, payload: bytes) -> None:
        """Take down the frames, and learn from those that tell of keys and connection ids."""
        crypto, ids = self._rows.frames(row, payload)
        for offset, piece in crypto:
            for kind, size in connection.crypto(space, offset, piece, from_server=from_server):
                self._rows.message(row, kind, size)
                if kind == Message.ENCRYPTED_EXTENSIONS:
                    self._know(connection, connection.preferred_id, from_server=False)
        for connection_id in ids:
            self._know(connection, connection_id, from_server=not from_server)

    def _defer(self, deferred: Deferred) -> None:
        """Keep a packet whose keys may become known: of a ServerHello, say, that had to be sent twice."""
        if self._deferred_size + len(deferred.packet.data) <= DEFERRED_LIMIT:
            self._deferred_size += len(deferred.packet.data)
            self._deferred.append(deferred)

    def _is_padding(self, row: int, connection: ConnectionState, from_server: bool) -> bool:
        """Whether what follows another packet is none itself, since no key of its direction opens it."""
        keys = connection.keys(Form.ONE_RTT, connection.version, self._secrets, from_server=from_server)
        return self._rows.follows_another(row) and next(keys, None) is not None

    def _mark_resets(self) -> None:
        """Packets with a short header that end with a reset token (RFC 9000, section 10.3.1)."""
        tokens = {connection.reset_token for connection in self._connections} | self._rows.reset_tokens
        for row, _, _, _, packet in self._deferred:
            if packet.form is Form.ONE_RTT and packet.data[-RESET_TOKEN:] in tokens and len(packet.data) >= LEAST_RESET:
                self._rows.set(row, FORM, Form.STATELESS_RESET)

    def trace(self) -> Trace:
        """The frozen columns of all packets so far."""
        opened: dict[tuple[int, int, bool], int] = {}
        for row, connection, from_server, known, packet in self._deferred:
            key = connection.index, SPACES[packet.form], from_server
            largest = max(known, opened.get(key, -1))
            number = self._decrypt(connection, row, from_server, packet, largest)
            if number is not None:
                opened[key] = max(largest, number)
            elif packet.form is Form.ONE_RTT and not packet.dcid and self._is_padding(row, connection, from_server):
                self._rows.set(row, FORM, Form.UNKNOWN)
        self._mark_resets()
        self._deferred.clear()
        return self._rows.trace(tuple(connection.stated for connection in self._connections))
