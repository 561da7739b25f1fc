"""Variants of implementations: the same image with other parameters, under a name of its own."""

from dataclasses import replace

from quicsat.model.errors import InputError
from quicsat.model.implementation import NOTHING_KNOWN, CongestionControl, Implementation, Role, Variant
from quicsat.model.names import VARIANT_SIGN, did_you_mean
from quicsat.model.text import quoted


def variant_named(implementation: Implementation, name: str) -> Implementation:
    """The variant of an implementation, as an implementation; upper and lower case are alike.

    It supports the roles for which it has parameters. Raises :class:`InputError` if there is none of this name.
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
        virtual_only=NOTHING_KNOWN,
    )


def _congestion_control(known: CongestionControl | None, variant: Variant) -> CongestionControl | None:
    """Congestion control of the variant; HyStart is known only for the default of the implementation."""
    if variant.congestion_control is None:
        return known
    own = variant.congestion_control
    return replace(
        known or CongestionControl(), default=own, hystart=known.hystart if known and known.default == own else None
    )
