"""Takes the protection off TLS records of a TCP connection, with the secrets of a key log.

RFC 8446, section 5 (TLS 1.3); RFC 5246, sections 5 and 6, with RFC 5288 and RFC 7905 (TLS 1.2).
"""

from __future__ import annotations

import hmac
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from quicsat.traces.columns import Connection
from quicsat.traces.protection import AES_128, AES_256, CHACHA20, Aead, ciphers_for, expand_label
from quicsat.traces.tls import Handshake, hello_version, messages

HEADER, TAG, EXPLICIT_NONCE, HELLO_RANDOM = 5, 16, 8, 11
"""Bytes: of a record's header, of what authenticates it, of the part of a nonce that TLS 1.2 sends with GCM, and before
the random of a hello."""
MOST_RECORD = (1 << 14) + 2048
"""Bytes of a protected record (RFC 5246, section 6.2.3)."""
CHANGE_CIPHER_SPEC, HANDSHAKE, APPLICATION_DATA = 20, 22, 23
"""Types of records."""
TLS_1_2 = 0x0303
SIDES = {True: "SERVER", False: "CLIENT"}
MASTER_SECRET, EARLY_SECRET = "CLIENT_RANDOM", "CLIENT_EARLY_TRAFFIC_SECRET"
SUITES = {
    **dict.fromkeys((0x009C, 0x009E, 0xC02B, 0xC02F), AES_128),
    **dict.fromkeys((0x009D, 0x009F, 0xC02C, 0xC030), AES_256),
    **dict.fromkeys((0xCCA8, 0xCCA9, 0xCCAA), CHACHA20),
}
"""Cipher suites of TLS 1.2 that are read, and that of TLS 1.3 with the same algorithm."""
KEY_SIZES = {AES_128: 16, AES_256: 32, CHACHA20: 32}


class Plaintext(NamedTuple):
    """Application data of a record."""

    start: int
    """Position of the first byte among those that its side sends over TCP, where it stands encrypted."""
    data: bytes
    early: bool
    """It is early data (RFC 8446, section 2.3), which the server may have refused."""


class _Content(NamedTuple):
    """What a record protects."""

    kind: int
    """The type of records with such content."""
    start: int
    """Position of the first byte in the record."""
    data: bytes
    early: bool = False


class Records:
    """The records of one connection; both sides share what the handshake says."""

    def __init__(self, secrets: Mapping[bytes, Mapping[str, tuple[bytes, ...]]]) -> None:
        self._secrets = secrets
        self._handshake = Handshake()
        self._server_random = b""
        self._version = 0
        self._sides = {True: _Side(), False: _Side()}

    @property
    def stated(self) -> Connection:
        """What the handshake has said so far."""
        return self._handshake.stated

    def read(self, piece: bytes, *, from_server: bool) -> Iterator[Plaintext]:
        """The application data of all records that ``piece``, the next bytes of a side, makes whole."""
        side = self._sides[from_server]
        side.buffer += piece
        while len(side.buffer) >= HEADER:
            end = HEADER + int.from_bytes(side.buffer[3:HEADER], "big")
            if side.buffer[1] != 3 or end > HEADER + MOST_RECORD:  # it is not TLS
                side.buffer.clear()
                side.keys = []
                return
            if len(side.buffer) < end:
                return
            record = bytes(side.buffer[:end])
            del side.buffer[:end]
            found = self._open(side, record, from_server)
            if found is not None:
                yield found._replace(start=side.start + found.start)
            side.start += end

    def _open(self, side: _Side, record: bytes, from_server: bool) -> Plaintext | None:
        """The application data of a record, whose ``start`` counts from the record; None if it has none."""
        if record[0] == HANDSHAKE and side.keys is None:
            self._hello(record, from_server)
        elif record[0] == CHANGE_CIPHER_SPEC and self._version == TLS_1_2:
            side.keys = self._keys(from_server)
        elif record[0] in (HANDSHAKE, APPLICATION_DATA):
            if side.keys is None or (side.incomplete and self._handshake.cipher):
                side.keys = [*(side.keys or ()), *self._keys(from_server)]
                side.incomplete = not self._handshake.cipher
            opened = side.decrypt(record)
            if opened is not None and opened.kind == HANDSHAKE:
                self._messages(opened.data, from_server)
            elif opened is not None and opened.data:
                return Plaintext(opened.start, opened.data, opened.early)
        return None

    def _messages(self, content: bytes, from_server: bool) -> None:
        for kind, body, _ in messages(content, 0):
            self._handshake.read(kind, body, from_server=from_server)

    def _hello(self, record: bytes, from_server: bool) -> None:
        self._messages(record[HEADER:], from_server)
        if from_server and (version := hello_version(record)):
            self._server_random, self._version = record[HELLO_RANDOM : HELLO_RANDOM + 32], version

    def _keys(self, from_server: bool) -> list[_RecordKeys]:
        """Those of one side in the order of their use; none if they are not in the key log.

        Before the server has chosen a cipher suite, those of early data, whose cipher suite is that of the earlier
        session (RFC 8446, section 4.2.10).
        """
        known, random = self._secrets.get(self._handshake.random, {}), self._handshake.random
        cipher = self._handshake.cipher
        if self._version == TLS_1_2:
            suite, master = SUITES.get(cipher), known.get(MASTER_SECRET)
            if suite is None or not master:
                return []
            return [_tls_1_2_keys(master[0], suite, self._server_random + random, from_server=from_server)]
        if not cipher and not from_server:
            early = known.get(EARLY_SECRET, ())
            return [_tls_1_3_keys(each, suite, early=True) for each in early for suite in ciphers_for(each)]
        labels = (f"{SIDES[from_server]}_{kind}" for kind in ("HANDSHAKE_TRAFFIC_SECRET", "TRAFFIC_SECRET_0"))
        secrets = [secret for label in labels for secret in known.get(label, ())]
        return [_tls_1_3_keys(secret, cipher) for secret in secrets] if cipher in KEY_SIZES else []


class _Side:
    """What one side has sent."""

    def __init__(self) -> None:
        self.buffer = bytearray()
        """A record that is not whole."""
        self.start = 0
        """Where it begins."""
        self.keys: list[_RecordKeys] | None = None
        """The ones in use first; None before protection begins."""
        self.incomplete = False
        """The keys are those of early data only."""
        self._number = 0

    def decrypt(self, record: bytes) -> _Content | None:
        for place, keys in enumerate(self.keys or ()):
            number = 0 if place else self._number
            opened = keys.open(number, record)
            if opened is not None:
                self.keys, self._number = (self.keys or [])[place:], number + 1
                return opened
        return None


class _RecordKeys:
    """What protects the records of one side."""

    def __init__(self, key: bytes, vector: bytes, cipher: int, version: int, *, early: bool = False) -> None:
        self._aead = Aead(key, cipher)
        self._vector, self._old = vector, version == TLS_1_2
        self._early = early
        self._explicit = EXPLICIT_NONCE if self._old and cipher != CHACHA20 else 0

    def open(self, number: int, record: bytes) -> _Content | None:
        """What the record protects; None if these are not its keys."""
        start = HEADER + self._explicit
        nonce = (int.from_bytes(self._vector, "big") ^ number).to_bytes(12, "big")
        if self._explicit:
            nonce = self._vector + record[HEADER:start]
        header = record[:HEADER]
        if self._old:
            header = number.to_bytes(8, "big") + record[:3] + max(len(record) - start - TAG, 0).to_bytes(2, "big")
        content = self._aead.decrypt(nonce, record[start:], header)
        if content is None:
            return None
        if self._old:
            return _Content(record[0], start, content)
        content = content.rstrip(b"\0")  # padding (RFC 8446, section 5.2)
        return _Content(content[-1] if content else 0, start, content[:-1], self._early)


def _tls_1_3_keys(secret: bytes, cipher: int, *, early: bool = False) -> _RecordKeys:
    key, vector = (expand_label(secret, label, size) for label, size in (("key", KEY_SIZES[cipher]), ("iv", 12)))
    return _RecordKeys(key, vector, cipher, 0, early=early)


def _tls_1_2_keys(master: bytes, cipher: int, seed: bytes, *, from_server: bool) -> _RecordKeys:
    """From the key block (RFC 5246, section 6.3), which has no keys of a MAC with these ciphers."""
    algorithm, size, vector = "sha384" if cipher == AES_256 else "sha256", KEY_SIZES[cipher], 4
    if cipher == CHACHA20:
        vector = 12
    label, block = b"key expansion" + seed, b""
    state = hmac.digest(master, label, algorithm)
    while len(block) < 2 * (size + vector):
        block += hmac.digest(master, state + label, algorithm)
        state = hmac.digest(master, state, algorithm)
    keys, vectors = block[: 2 * size], block[2 * size :]
    key = keys[size:] if from_server else keys[:size]
    own = vectors[vector : 2 * vector] if from_server else vectors[:vector]
    return _RecordKeys(key, own, cipher, TLS_1_2)
