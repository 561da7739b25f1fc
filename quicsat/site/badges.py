"""A badge per implementation: how many of its runs succeeded, and how well it uses links as a server."""

from quicsat.model.outcomes import Outcome
from quicsat.model.text import counted
from quicsat.model.units import percent
from quicsat.results.summary import figures
from quicsat.site.campaigns import SiteCampaign
from quicsat.site.pages import Renderer

_COLOURS = ((0.99, "#1a7f37"), (0.8, "#7a6400"), (0.0, "#b3261e"))
"""From which share of successes on; white words on each have a contrast above 4.5."""
SILENT = (Outcome.ERROR, Outcome.UNSUPPORTED, Outcome.SKIPPED)
"""Outcomes that say nothing about an implementation."""
_LETTER = 6.6
"""Mean width of a letter, in units of the picture."""


def badge(campaign: SiteCampaign, name: str) -> dict[str, str | int]:
    """An implementation's badge in the form that shields.io reads from an endpoint."""
    results = [
        each
        for each in campaign.results.results
        if name in (each.server, each.client) and each.verdict.outcome not in SILENT
    ]
    good = sum(each.verdict.outcome is Outcome.SUCCEEDED for each in results)
    shares = [cell.efficiency.mean for key, cell in campaign.cells.items() if key[0] == name and cell.efficiency]
    spread = figures(shares)
    message = f"{good} of {counted(len(results), 'run')}" + (f", {percent(spread.mean)} of the link" if spread else "")
    colour = next(each for least, each in _COLOURS if not results or good / len(results) >= least)
    return {
        "schemaVersion": 1,
        "label": f"quicsat {name}",
        "message": message if results else "not run",
        "color": colour if results else "#57606a",
    }


def badge_picture(renderer: Renderer, badge: dict[str, str | int]) -> bytes:
    """The badge as SVG."""
    left, right = (round(len(str(badge[key])) * _LETTER) + 12 for key in ("label", "message"))
    return renderer.page("badge.svg", badge=badge, left=left, right=right)
