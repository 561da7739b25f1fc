"""The bootstrap over servers and clients."""

import math

import numpy as np

from paper.resampling import bootstrapped_share
from quicsat.model.outcomes import Outcome
from quicsat.statistics.samples import Sample


def sample(server: str, client: str, *values: float) -> Sample:
    return Sample.of(server, client, "sat", values, (Outcome.SUCCEEDED,) * len(values))


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


def test_the_lower_end_is_seldom_above_the_share() -> None:
    """Simulated: servers have three quarters of the variance. The report's claims rest on the lower end."""
    rng = np.random.default_rng(5)
    trials, held, above = 120, 0, 0
    for _ in range(trials):
        logs = rng.normal(0, 3**0.5, (16, 1)) + rng.normal(0, 0.2**0.5, (1, 14)) + rng.normal(0, 0.8**0.5, (16, 14))
        ends = bootstrapped_share(
            [sample(f"s{place}", f"c{step}", math.exp(0.3 * value)) for (place, step), value in np.ndenumerate(logs)],
            resamples=400,
        )
        assert ends is not None
        held += ends[0] <= 0.75 <= ends[1]
        above += ends[0] > 0.75
    assert held / trials > 0.88
    assert above / trials <= 0.05


def test_a_single_server_has_no_share() -> None:
    assert bootstrapped_share([sample("a", "x", 1.0), sample("a", "y", 2.0)]) is None
