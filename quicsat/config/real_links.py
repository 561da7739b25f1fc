"""Reads the real link of a test case; faults are added to the problems of its fields."""

from dataclasses import replace

from quicsat.config.quantities import duration, one_line, parse_name, rate, within
from quicsat.config.yaml_fields import Fields
from quicsat.model.real_link import RealDirection, RealLink
from quicsat.model.test_case import Link

HOSTS = {"client host": "my_modem", "server host": "my_server"}
"""Keys that make a link a real one -> an example of the value."""
EXAMPLES = {"forward rate": "20 Mbit/s", "return rate": "2 Mbit/s", "round trip": "600 ms"}
ABOUT = ("provider", "tariff", "modem", "traffic limit")
KEYS = (*HOSTS, "rate", *EXAMPLES, *ABOUT)

_RATE = within(rate, "1 bit/s", "100 Gbit/s")


_PARSERS = {
    **dict.fromkeys(HOSTS, parse_name),
    "round trip": within(duration, "0 s", "60 s"),
    **dict.fromkeys(ABOUT, one_line),
}


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
    inherited = base or RealLink("", "", RealDirection(0), RealDirection(0), 0)
    if not fields.holds_mapping("link"):
        return inherited
    link = fields.mapping("link")
    link.allow_only(KEYS)
    if whole and base is None:
        link.require(HOSTS | {key: example for key, example in EXAMPLES.items() if key == "round trip"})
        if "rate" not in link:
            link.require({key: example for key, example in EXAMPLES.items() if key != "round trip"})
    both, *own = (link.read(f"{way}rate", _RATE) for way in ("", "forward ", "return "))
    forward, back = (
        base if (chosen := mine or both) is None else RealDirection(chosen)
        for mine, base in zip(own, (inherited.forward, inherited.back), strict=True)
    )
    return replace(inherited, forward=forward, back=back, **link.values(_PARSERS, round_trip_delay="round trip"))
