"""The seed of a run, from that of its campaign."""

import hashlib


def run_seed(campaign_seed: int, test_case: str, repetition: int) -> int:
    """Seed of a run, 1 to 2**31 - 1: the same for all pairs, so that they have the same losses.

    ``test_case`` is :attr:`TestCase.random_name`, so that it is the same for all members of a family, too.
    """
    digest = hashlib.sha256(f"{campaign_seed} {test_case} {repetition}".encode()).digest()
    return int.from_bytes(digest[:8]) % (2**31 - 1) + 1
