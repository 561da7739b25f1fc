"""Variants of implementations: the same image, told to run in another way, under a name of their own."""

from __future__ import annotations

from dataclasses import replace

from interop.errors import InputError
from interop.model import CongestionControl, Implementation, Role, Variant
from interop.names import VARIANT_SIGN, did_you_mean, quoted


def variant_named(implementation: Implementation, name: str) -> Implementation:
    """The variant of an implementation, as an implementation; upper and lower case are alike.

    It can play the roles for which it has words. Raises :class:`InputError` if there is none of this name.
    """
    known = {variant.name.casefold(): variant for variant in implementation.variants}
    variant = known.get(name.casefold())
    if variant is None:
        hint = did_you_mean(name, [each.name for each in implementation.variants])
        listed = ", ".join(each.name for each in implementation.variants) or "none"
        raise InputError(f"{implementation.name} has no variant {quoted(name)}.{hint} Known: {listed}.")
    words = {Role.SERVER: variant.server, Role.CLIENT: variant.client}
    return replace(
        implementation,
        name=f"{implementation.name}{VARIANT_SIGN}{variant.name}",
        roles=frozenset(role for role in implementation.roles if words[role]),
        congestion_control=_congestion_control(implementation.congestion_control, variant),
        variants=(),
        server_parameters=variant.server,
        client_parameters=variant.client,
    )


def _congestion_control(known: CongestionControl | None, variant: Variant) -> CongestionControl | None:
    """What the variant runs under; HyStart is known of the implementation's own default only."""
    if variant.congestion_control is None:
        return known
    own = variant.congestion_control
    return replace(
        known or CongestionControl(), default=own, hystart=known.hystart if known and known.default == own else None
    )
