"""What is known of one QUIC connection while its packets are read: keys, packet numbers, connection ids, handshake."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from quicsat.traces.columns import Connection, Form
from quicsat.traces.protection import VERSION_1, VERSION_2, Keys, ciphers_for, initial_keys
from quicsat.traces.tls import Assembly, Handshake, messages

Secrets = Mapping[str, tuple[bytes, ...]]
"""Secrets of a connection by their labels in a key log (draft-ietf-tls-keylogfile).

There are several of a label if a server made two connections of one ClientHello: a Retry, say, and a ServerHello, in
reply to two Initials that it did not know to belong together.
"""
INITIAL, HANDSHAKE, ONE_RTT = range(3)
"""Packet number spaces (RFC 9000, section 12.3)."""
SPACES = {Form.INITIAL: INITIAL, Form.HANDSHAKE: HANDSHAKE, Form.ZERO_RTT: ONE_RTT, Form.ONE_RTT: ONE_RTT}
LABELS = {
    (Form.ZERO_RTT, False): "CLIENT_EARLY_TRAFFIC_SECRET",
    (Form.HANDSHAKE, False): "CLIENT_HANDSHAKE_TRAFFIC_SECRET",
    (Form.HANDSHAKE, True): "SERVER_HANDSHAKE_TRAFFIC_SECRET",
    (Form.ONE_RTT, False): "CLIENT_TRAFFIC_SECRET_0",
    (Form.ONE_RTT, True): "SERVER_TRAFFIC_SECRET_0",
}
MOST_SECRETS = 8
"""Secrets of one label and client random that are tried."""
RANDOM = slice(6, 38)
"""Where the random of a ClientHello stands in its message."""
PREFERRED_ID = 24
"""Where the length of the connection id stands in preferred_address (RFC 9000, section 18.2)."""


class ConnectionState:
    """The state of a connection; ``from_server`` distinguishes the directions."""

    def __init__(self, index: int, version: int, destination: bytes) -> None:
        self.index, self.version = index, version
        self.largest = [[-1, -1], [-1, -1], [-1, -1]]
        """The largest packet number by space and direction."""
        self.id_sizes = [0, 0]
        """Length of the destination connection ids by direction."""
        self._handshake = Handshake()
        self._destinations = [destination]
        self._retries: set[bytes] = set()
        self._found: dict[tuple[Form, bool], list[Keys]] = {}
        """The latest keys of each secret that has opened a packet, the last one used first."""
        self._guessed: dict[tuple[bytes, int, int], Keys] = {}
        self._previous: dict[Keys, Keys] = {}
        self._assemblies: dict[tuple[int, bool], Assembly] = {}

    # ---- keys -----------------------------------------------------------------------------

    def initial(self, version: int, *, from_server: bool) -> Iterator[Keys]:
        """Keys that an Initial may have, by the newest destination that the client has chosen first."""
        for destination in reversed(self._destinations):
            if (pair := initial_keys(version, destination)) is not None:
                yield pair[from_server]

    def keys(self, form: Form, version: int, secrets: Mapping[bytes, Secrets], *, from_server: bool) -> Iterator[Keys]:
        """Keys that a packet may have, the likeliest first."""
        if form is Form.INITIAL:
            yield from self.initial(version, from_server=from_server)
            return
        mine = secrets.get(self._handshake.random, {})
        known = self._found.get((form, from_server), [])
        for keys in known:
            yield keys
            if form is Form.ONE_RTT:
                yield keys.following
                if keys in self._previous:
                    yield self._previous[keys]
        if not known or len(mine.get(LABELS[form, from_server], ())) > len(known):
            opened = {id(keys.mask) for keys in known}  # a key update keeps the mask
            yield from (keys for keys in self._guesses(form, version, mine, from_server) if id(keys.mask) not in opened)

    def _guesses(self, form: Form, version: int, secrets: Secrets, from_server: bool) -> Iterator[Keys]:
        """Cipher suite and version may not be known yet, but there are few of them."""
        versions = dict.fromkeys((self.version, VERSION_1, VERSION_2)) if form is Form.ONE_RTT else (version,)
        for secret in secrets.get(LABELS.get((form, from_server), ""), ())[:MOST_SECRETS]:
            ciphers, chosen = ciphers_for(secret), self._handshake.cipher
            if form is not Form.ZERO_RTT and chosen in ciphers:
                ciphers = (chosen,)
            for number in versions:
                for cipher in ciphers:
                    yield self._made(secret, cipher, number)

    def _made(self, secret: bytes, cipher: int, version: int) -> Keys:
        if (secret, cipher, version) not in self._guessed:
            self._guessed[secret, cipher, version] = Keys(secret, cipher, version)
        return self._guessed[secret, cipher, version]

    def opened(self, form: Form, version: int, keys: Keys, number: int, *, from_server: bool) -> None:
        """A packet was decrypted with these keys."""
        largest = self.largest[SPACES[form]]
        largest[from_server] = max(number, largest[from_server])
        if form is Form.HANDSHAKE or (form is Form.INITIAL and from_server):
            self.version = version
        if form is Form.INITIAL:
            return
        known = self._found.setdefault((form, from_server), [])
        if known and known[0] is keys:
            return
        current = next((each for each in known if each.mask is keys.mask), None)
        if current is not None:
            known.remove(current)
        if current is not None and keys.generation > current.generation:
            self._previous[keys] = current
        known.insert(0, keys if current is None or keys.generation > current.generation else current)

    def retry(self, destination: bytes) -> None:
        """The client may begin again with this destination; of several Retries, it takes one."""
        if len(self._destinations) == 1:
            self._retries.add(destination)

    def began_again(self, destination: bytes) -> None:
        """An Initial of the client's to a destination; the first one after a Retry may have another ClientHello.

        A server that keeps no state answers each Initial with a Retry, and a ClientHello may need several
        (RFC 9000, sections 8.1.2 and 17.2.5.2).
        """
        if destination in self._retries:
            self._retries.clear()
            self._destinations.append(destination)
            self._assemblies.pop((INITIAL, False), None)

    # ---- handshake ------------------------------------------------------------------------

    def crypto(self, space: int, offset: int, piece: bytes, *, from_server: bool) -> list[tuple[int, int]]:
        """Take a piece of handshake; type and size of the messages that are whole now."""
        key = (space, from_server)
        assembly = self._assemblies.setdefault(key, Assembly())
        if not assembly.add(offset, piece):
            return []
        data = assembly.data
        if key == (INITIAL, False) and not assembly.read and len(data) >= RANDOM.stop:
            self._handshake.random = bytes(data[RANDOM])
        whole = []
        for kind, body, end in messages(data, assembly.read):
            self._handshake.read(kind, body, from_server=from_server)
            whole.append((kind, len(body)))
            assembly.read = end
        return whole

    @property
    def preferred_id(self) -> bytes:
        """The connection id of the server's preferred address; empty if there is none."""
        address = bytes.fromhex(str(self.stated.server_parameters.get("preferred_address", "")))
        size = address[PREFERRED_ID] if len(address) > PREFERRED_ID else 0
        return address[PREFERRED_ID + 1 : PREFERRED_ID + 1 + size]

    @property
    def reset_token(self) -> bytes:
        """The server's stateless reset token for its first connection id; empty if there is none."""
        return bytes.fromhex(str(self.stated.server_parameters.get("stateless_reset_token", "")))

    @property
    def stated(self) -> Connection:
        """What the handshake says."""
        return self._handshake.stated
