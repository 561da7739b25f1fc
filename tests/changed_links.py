"""Links with other values than one that is given."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from quicsat.model.emulated_link import EmulatedLink


def with_values(link: EmulatedLink, values: Mapping[str, Any]) -> EmulatedLink:
    """``link`` with other values by their places: ``forward.loss``, ``back.loss``, ``blackhole``."""
    for place, value in values.items():
        way, _, name = place.rpartition(".")
        own = {way: replace(getattr(link, way), **{name: value})} if way else {name: value}
        link = replace(link, **own)
    return link
