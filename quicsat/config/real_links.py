"""Reads the real link of a test case; faults are added to the problems of its fields."""

from __future__ import annotations

from quicsat.config.quantities import duration, one_line, rate, within
from quicsat.config.yaml_fields import Fields
from quicsat.model.names import NAME_RULE, is_name
from quicsat.model.real_link import RealLink
from quicsat.model.test_case import Link

HOSTS = {"client host": "my_modem", "server host": "my_server"}
"""Keys that make a link a real one -> an example of the value."""
EXAMPLES = {"forward rate": "20 Mbit/s", "return rate": "2 Mbit/s", "round trip": "600 ms"}
ABOUT = ("provider", "tariff", "modem", "traffic limit")
KEYS = (*HOSTS, "rate", *EXAMPLES, *ABOUT)

_RATE = within(rate, "1 bit/s", "100 Gbit/s")
_ROUND_TRIP = within(duration, "0 s", "60 s")


def means_real_link(fields: Fields, base: Link | None) -> bool:
    """Whether the document of a test case that extends one with the link ``base`` has a real link."""
    if not fields.holds_mapping("link"):
        return isinstance(base, RealLink)
    link = fields.mapping("link")
    return any(key in link for key in HOSTS) or (isinstance(base, RealLink) and "scenario" not in link)


def read_real_link(fields: Fields, base: RealLink | None, *, whole: bool) -> RealLink:
    """The link in ``fields``; missing keys are inherited from ``base``.

    If not ``whole`` (the extended test case is faulty), missing keys are not reported.
    """
    inherited = base or RealLink("", "", 0, 0, 0)
    if not fields.holds_mapping("link"):
        return inherited
    link = fields.mapping("link")
    link.allow_only(KEYS)
    if whole and base is None:
        link.require(HOSTS | {key: example for key, example in EXAMPLES.items() if key == "round trip"})
        if "rate" not in link:
            link.require({key: example for key, example in EXAMPLES.items() if key != "round trip"})
    both = link.read("rate", _RATE)
    forward, back = link.read("forward rate", _RATE), link.read("return rate", _RATE)
    about = {key.replace(" ", "_"): link.read(key, one_line) for key in ABOUT}
    round_trip = link.read("round trip", _ROUND_TRIP)
    return RealLink(
        client_host=link.read("client host", parse_host_name) or inherited.client_host,
        server_host=link.read("server host", parse_host_name) or inherited.server_host,
        forward_rate=forward or both or inherited.forward_rate,
        return_rate=back or both or inherited.return_rate,
        round_trip_delay=inherited.round_trip_delay if round_trip is None else round_trip,
        **{field: getattr(inherited, field) if value is None else value for field, value in about.items()},
    )


def parse_host_name(text: str) -> str:
    """The name of a host, which is also the name of a folder."""
    if not is_name(text):
        raise ValueError(f"must be {NAME_RULE}.")
    return text
