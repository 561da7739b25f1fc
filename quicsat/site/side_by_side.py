"""What the page for two cells side by side shows of each: its conditions and its numbers; pure."""

from typing import Any

from quicsat.model.test_case import files_in_words
from quicsat.model.text import counted, printable
from quicsat.model.units import seconds
from quicsat.site.campaigns import SiteCampaign
from quicsat.site.cell_view import CellView
from quicsat.site.pages import day, number


def beside(campaign: SiteCampaign, shown: CellView) -> dict[str, Any]:
    """Values for ``web/assets/side.js``.

    ``facts``: name and value of each condition. ``metrics``: label, mean and its words of each main metric.
    """
    main = {metric.name for metric, _ in shown.main}
    images = {f"{role}'s image": f"{facts.version} {facts.id[:19]}".strip() for role, facts in shown.images.items()}
    facts = {
        "outcome": f"{shown.cell.succeeded} of {counted(shown.cell.planned, 'repetition')} succeeded",
        "server": shown.server,
        "client": shown.client,
        "test case": shown.case.name,
        "files": files_in_words(shown.case),
        "link": shown.link,
        "time limit": seconds(shown.case.timeout),
        "campaign": day(campaign.started),
        "clock": campaign.time,
        **images,
        **dict(shown.negotiated),
    }
    return {
        "title": f"{shown.server} to {shown.client}, {shown.case.name}",
        "size": shown.case.total_size,
        "state": shown.shown.state.key,
        "facts": [[name, printable(value)] for name, value in facts.items()],
        "metrics": [
            [each.metric.label, each.figures.mean, number(each.metric, each.figures.mean)]
            for each in shown.spreads
            if each.metric.name in main
        ],
    }
