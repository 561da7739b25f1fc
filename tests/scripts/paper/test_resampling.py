"""The bootstrap over servers and clients."""

from __future__ import annotations

from interop.model.outcomes import Outcome
from interop.statistics.samples import Sample
from scripts.paper.resampling import bootstrapped_share


def sample(server: str, client: str, *values: float) -> Sample:
    return Sample(server, client, "sat", values, (Outcome.SUCCEEDED,) * len(values))


def test_a_share_that_servers_make() -> None:
    """Each server is twice as fast as the one before; one pair lacks a value, and repetitions hardly differ."""
    many = [
        sample(server, client, *(2.0**place * (1 + 0.01 * (place * step % 3) + 0.001 * again) for again in range(3)))
        for place, server in enumerate("abcdefgh")
        for step, client in enumerate("xyz")
        if (server, client) != ("h", "z")
    ]
    ends = bootstrapped_share(many)
    assert ends is not None
    assert 0.99 < ends[0] <= ends[1] < 1
    assert ends == bootstrapped_share(many)


def test_a_share_that_clients_make() -> None:
    many = [
        sample(server, client, 2.0**step * (1 + 0.01 * (place * step % 3)))
        for place, server in enumerate("abc")
        for step, client in enumerate("stuvwxyz")
    ]
    ends = bootstrapped_share(many)
    assert ends is not None
    assert ends[1] < 0.01


def test_a_single_server_has_no_share() -> None:
    assert bootstrapped_share([sample("a", "x", 1.0), sample("a", "y", 2.0)]) is None
