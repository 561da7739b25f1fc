"""Each check of addresses passes one trace and fails another for exactly one reason."""

from __future__ import annotations

from interop import path_checks as checks
from interop.model import ErrorCode
from tests.test_handshake_checks import fails
from tests.traces import Row, columns

IPV4, IPV6 = "193.167.0.100:4433 193.167.100.100:443", "fd00:cafe:cafe::100:4433 fd00:cafe:cafe:100::100:443"


def test_ends_of_a_path() -> None:
    assert checks.ends(IPV6) == ("fd00:cafe:cafe::100", "4433", "fd00:cafe:cafe:100::100", "443")


def test_ipv6() -> None:
    good = columns(Row(0, False, path=IPV6), Row(0, True, path=IPV6))
    tried = columns(Row(0, False, path=IPV4), Row(0, True, path=IPV6))
    answered = columns(Row(0, True, path=IPV6), Row(0, True, path=IPV4))
    assert checks.ipv6(good, good) is None
    assert checks.ipv6(columns(), columns()) is None
    assert fails(checks.ipv6(tried, good), ErrorCode.IPV4_USED, "client's trace shows 1 packets of IPv4")
    assert fails(
        checks.ipv6(good, answered), ErrorCode.IPV4_USED, "server's trace shows 1 packets of IPv4, the first in frame 2"
    )
    assert checks.ipv6(tried, tried, upstream=True) is None
    assert checks.ipv6(answered, good, upstream=True) is None
    assert fails(checks.ipv6(good, answered, upstream=True), ErrorCode.IPV4_USED, "server's")
