"""A link in words says all that makes it different from others."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from interop.model.emulated_link import (
    Blackhole,
    Corruption,
    CorruptionMode,
    CrossTraffic,
    EmulatedLink,
    GilbertElliottLoss,
    LinkDirection,
    QueueMode,
    Rebind,
    UniformLoss,
)
from interop.model.link_format import format_link
from interop.model.units import MBPS
from tests.results_builder import SAT, SATLOSS

LINK = SAT.emulated


@pytest.mark.parametrize(
    ("link", "words"),
    [
        (LINK, "20.00 / 2.00 Mbit/s, RTT 600.0 ms, queue 25 packets, no loss"),
        (SATLOSS.link, "20.00 / 2.00 Mbit/s, RTT 600.0 ms, queue 25 packets, loss 1 %"),
        (
            EmulatedLink("simple-p2p", 0.015, 0.015, 20 * MBPS, 20 * MBPS, 25, 50, queue_mode=QueueMode.PAPER),
            "20.00 Mbit/s, RTT 30.0 ms, queue 25 / 50 packets (as QIR-SE had it), no loss",
        ),
        (
            replace(LINK, forward_loss=GilbertElliottLoss(0.01, 0.25), return_loss=UniformLoss(0.001)),
            "20.00 / 2.00 Mbit/s, RTT 600.0 ms, queue 25 packets, loss 3.85 % in bursts of 4 packets / 0.10 %",
        ),
        (
            replace(LINK, forward_loss=UniformLoss(0.0), return_loss=GilbertElliottLoss(0.5, 0.0)),
            "20.00 / 2.00 Mbit/s, RTT 600.0 ms, queue 25 packets, loss none / 100 % without end",
        ),
        (
            replace(LINK, forward_loss=UniformLoss(0.3, 3)),
            "20.00 / 2.00 Mbit/s, RTT 600.0 ms, queue 25 packets, loss 30 % (at most 3 in a row) / none",
        ),
    ],
)
def test_links_in_words(link: EmulatedLink, words: str) -> None:
    assert format_link(link) == words


@pytest.mark.parametrize(
    ("impairments", "words"),
    [
        ({"forward_corruption": Corruption(0.02), "return_corruption": Corruption(0.02)}, "corruption 2 %"),
        (
            {"forward_corruption": Corruption(0.3, 3), "return_corruption": Corruption(0.02, mode=CorruptionMode.LOSS)},
            "corruption 30 % (at most 3 in a row) / 2 % as loss",
        ),
        ({"return_drops": (2, 3)}, "drops none / no. 2, 3"),
        ({"forward_drops": tuple(range(1, 11))}, "drops no. 1, 2, 3, 4, 5, 6, 7, 8 and 2 more / none"),
        ({"blackhole": Blackhole(5, 2)}, "dark for 2.0 s after 5.0 s"),
        ({"blackhole": Blackhole(0.5, 2, 3, LinkDirection.SERVER)}, "dark return for 2.0 s after 500.0 ms, 3 times"),
        ({"rebind": Rebind(1)}, "new client port after 1.0 s"),
        ({"rebind": Rebind(1, 5, address=True)}, "new client address and port after 1.0 s, then every 5.0 s"),
        ({"cross_traffic": CrossTraffic()}, "beside a TCP flow (cubic)"),
    ],
)
def test_what_one_scenario_alone_does(impairments: dict[str, Any], words: str) -> None:
    assert format_link(replace(LINK, **impairments)) == f"{format_link(LINK)}, {words}"
