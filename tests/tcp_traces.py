"""TCP segments made by hand, as they are captured at both ends of a link."""

import struct
from dataclasses import dataclass
from ipaddress import ip_address

from tests.quic_builder import CLIENT, SERVER, Captured
from tests.quic_builder import pcap as pcap  # the same file for packets of any kind

SYN, ACK, FIN, RST = 0x02, 0x10, 0x01, 0x04
FIRST = {False: 4_294_967_000, True: 1_000_000}
"""Initial sequence numbers by from_server; the client's soon wrap."""


@dataclass(frozen=True)
class Tcp(Captured):
    """A segment of TCP."""

    offset: int = 0
    """Of the first byte of the payload; -1 for a SYN, also if it has a payload."""
    length: int = 0
    acknowledged: int | None = None
    """Offset of the byte that is expected next."""
    flags: int = 0
    sacks: tuple[tuple[int, int], ...] = ()
    window: int = 65535
    scale: int | None = None
    """Of windows, as a SYN states it."""
    port: int = CLIENT[1]
    """The client's."""

    @property
    def frame(self) -> bytes:
        """Ethernet, IP and TCP."""
        ends = (SERVER, CLIENT) if self.from_server else (CLIENT, SERVER)
        blocks = b"".join(struct.pack(">II", *(self._there(each) for each in block)) for block in self.sacks)
        options = bytes([1, 1, 5, 2 + len(blocks)]) + blocks if blocks else b""
        options += bytes([1, 3, 3, self.scale]) if self.scale is not None else b""
        flags = self.flags | (ACK if self.acknowledged is not None else 0)
        ports = (ends[0][1], self.port) if self.from_server else (self.port, ends[1][1])
        here = (FIRST[self.from_server] + 1 + self.offset) % 2**32
        tcp = struct.pack(
            ">HHIIBBHHH", *ports, here, self._there(self.acknowledged or 0),
            (20 + len(options)) // 4 << 4, flags, self.window, 0, 0,
        ) + options + bytes(self.length)  # fmt: skip
        source, target = (ip_address(end[0]).packed for end in ends)
        ip = struct.pack(">BBHHHBBH", 0x45, 0, 20 + len(tcp), 0, 0, 64, 6, 0) + source + target
        return bytes(12) + b"\x08\x00" + ip + tcp

    def _there(self, offset: int) -> int:
        return (FIRST[not self.from_server] + 1 + offset) % 2**32


def transfer(delay: float = 0.1) -> tuple[list[Tcp], list[Tcp]]:
    """At the client and at the server: TLS 1.3, then 5000 bytes of which the second segment is lost once."""
    sent = [
        (Tcp(0.0, False, -1, flags=SYN), False),
        (Tcp(0.1, True, -1, flags=SYN, acknowledged=0), False),
        (Tcp(0.2, False, 0, 300, 0), False),  # ClientHello
        (Tcp(0.3, True, 0, 1500, 300), False),  # ServerHello to Finished
        (Tcp(0.4, False, 300, 100, 1500), False),  # Finished and request
        *((Tcp(0.5 + n / 100, True, 1500 + 1000 * n, 1000, 400), n == 1) for n in range(5)),
        (Tcp(0.6, False, 400, 0, 2500), False),
        (Tcp(0.62, False, 400, 0, 2500, sacks=((3500, 4500),)), False),
        (Tcp(0.63, False, 400, 0, 2500, sacks=((3500, 5500),)), False),
        (Tcp(0.64, False, 400, 0, 2500, sacks=((3500, 6500),)), False),
        (Tcp(0.75, True, 2500, 1000, 400, window=65000), False),
        (Tcp(0.85, False, 400, 0, 6500), False),
    ]
    at_client: list[Tcp] = []
    at_server: list[Tcp] = []
    for each, lost in sent:
        mine, other = (at_server, at_client) if each.from_server else (at_client, at_server)
        mine.append(each)
        if not lost:
            other.append(Tcp(each.time + delay, *list(each.__dict__.values())[1:]))
    return sorted(at_client, key=lambda s: s.time), sorted(at_server, key=lambda s: s.time)
