"""Which end of a packet is the server."""

import pytest

from quicsat.traces.columns import direction

CLIENT, SERVER, NAT = "193.167.0.100", "193.167.100.100", "193.167.0.7"
CLIENT_6, SERVER_6 = "fd00:cafe:cafe:0::100", "fd00:cafe:cafe:100::100"


@pytest.mark.parametrize(
    ("packet", "from_server"),
    [
        ((CLIENT, 4433, SERVER, 443), False),
        ((SERVER, 443, CLIENT, 443), True),
        ((SERVER_6, 443, CLIENT_6, 4433), True),
        ((CLIENT, 2000, SERVER, 4443), False),  # a preferred address (RFC 9000, section 9.6)
        ((SERVER_6, 4443, CLIENT_6, 2000), True),
        ((NAT, 1000, SERVER, 443), False),
        ((SERVER, 443, NAT, 1000), True),
        ((CLIENT, 1000, SERVER, 53), None),
        ((NAT, 1000, SERVER, 4443), None),
        (("10.0.0.1", 443, "10.0.0.2", 1000), True),
        (("10.0.0.1", 1000, "10.0.0.2", 2000), None),
        (("193.167.100.2", 1000, SERVER, 443), None),  # the simulator's own
    ],
)
def test_direction(packet: tuple[str, int, str, int], from_server: bool | None) -> None:
    assert direction(*packet) is from_server
