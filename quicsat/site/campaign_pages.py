"""Writes what the site has about whole campaigns: start page, failures, method, data, and the list of all of them."""

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

from quicsat.model.clock import Clock
from quicsat.model.outcomes import Outcome
from quicsat.model.test_case import TestCase
from quicsat.model.units import percent
from quicsat.results.document import SCHEMA_FILE, document
from quicsat.results.summary import VIRTUAL_ONLY
from quicsat.site import address, cell_view, failures, rerun, summary_tables
from quicsat.site.campaigns import Key, SiteCampaign
from quicsat.site.construction import Site
from quicsat.site.pages import day
from quicsat.site.recent import Past

_WHAT = {
    "result.json": "everything: manifest, every run with its evidence, a summary of each cell",
    "repetitions.csv": "a line per run: who, what became of it, every metric",
    "attempts.csv": "a line per attempt: whether it counts, why not, what its outcome would be if it did",
    "reasons.json": "why runs did not succeed, by test case, server and client",
    "result.schema.json": "JSON Schema that result.json keeps to",
    "sha256sums.txt": "checksums of the other files",
}
_MOST_NAMED = 8
"""Test cases that a list of campaigns names."""
_MOST_CHOICES = 60
"""Campaigns that a start page offers."""


@dataclass(frozen=True)
class Listed:
    """A campaign in the list of all."""

    folder: str
    address: PurePosixPath
    started: Any
    share: str
    """Share of the conclusive runs that succeeded."""
    tests: str
    """Abbreviations of its test cases, ``23 tests`` if there are many."""
    size: str
    """``6 × 6``: servers and clients."""


def listed(campaign: SiteCampaign) -> Listed:
    """A campaign as lists show it."""
    conclusive = sum(campaign.count(each) for each in (Outcome.SUCCEEDED, Outcome.FAILED, Outcome.TIMEOUT))
    share = percent(campaign.count(Outcome.SUCCEEDED) / conclusive) if conclusive else "nothing"
    manifest = campaign.manifest
    short = [case.abbreviation for case in manifest.test_cases]
    tests = " ".join(short) if len(short) <= _MOST_NAMED else f"{len(short)} test cases"
    size = f"{len(manifest.servers)} × {len(manifest.clients)}"
    return Listed(campaign.folder, address.campaign(campaign.folder), campaign.started, share, tests, size)


@dataclass(frozen=True)
class History:
    """What a campaign's start page says of earlier campaigns."""

    past: Mapping[Key, Past]
    """Of its cells."""
    since: str = ""
    """What got worse; empty if there is no campaign to compare with."""
    comparison: PurePosixPath = address.COMPARISONS
    """The page with that comparison."""
    settled: bool = False
    """The campaign is so old that not all campaigns are looked at that its cells tell of; a page that was made earlier
    tells more, and stays."""


def write(site: Site, campaign: SiteCampaign, *, files: bool) -> None:
    """All pages of a campaign but its start page and those of its cells.

    ``files``: whether traces, keys and qlogs are taken into the site.
    """
    site.show(
        address.campaign(campaign.folder, "failures"), "failures.html", campaign, "Failures",
        causes=failures.causes(campaign), suspects=failures.suspects(campaign), cells=failures.cells(campaign),
    )  # fmt: skip
    site.show(
        address.campaign(campaign.folder, "method"), "method.html", campaign, "Method",
        hosts=campaign.brief.hosts, fingerprint=fingerprint(campaign), compliance=_compliance(campaign),
        command=rerun.of_campaign(campaign.manifest),
        own_files=list(dict.fromkeys(filter(None, map(rerun.own_file, campaign.manifest.test_cases)))),
    )  # fmt: skip
    _data(site, campaign, whole=files)


def write_start(site: Site, campaign: SiteCampaign, history: History, *, newest: bool) -> None:
    """The start page of a campaign, and the matrices without room there; the newest one's is that of the site, too."""
    shown, further = summary_tables.split(campaign)
    manifest = campaign.manifest
    values: dict[str, Any] = {
        "listing": listed(campaign),
        "matrices": [summary_tables.matrix(campaign, case, history.past) for case in shown],
        "history": history,
        "tests": summary_tables.tests(campaign),
        "further": [(each, _alone(campaign, each)) for each in further],
        "about": summary_tables.about(campaign),
        "legend": summary_tables.legend(campaign),
        "virtual_only": VIRTUAL_ONLY if any(cell.virtual_only for cell in campaign.cells.values()) else "",
        "hosts": campaign.brief.hosts,
        "servers": manifest.servers,
        "done": campaign.brief.runs,
        "left": campaign.seconds_left(),
        "attempts": f"{address.campaign(campaign.folder, 'tables')}#attempts",
    }
    page = address.campaign(campaign.folder)
    site.show(page, "overview.html", campaign, "Matrix", **values)
    if newest:
        site.show(address.HOME, "overview.html", campaign, "Matrix", base=str(page.parent), home=True, **values)
    for case in further:
        values |= {"matrices": [summary_tables.matrix(campaign, case, history.past)], "tests": None, "further": []}
        site.show(_alone(campaign, case), "overview.html", campaign, "Matrix", base=str(page.parent), **values)


def _alone(campaign: SiteCampaign, case: TestCase) -> PurePosixPath:
    """The page of a measurement that has no room on the start page."""
    return address.campaign(campaign.folder, f"matrix/{case.name}")


def fingerprint(campaign: SiteCampaign) -> str:
    """A digest of all that decides what is measured: the same in campaigns that differ only in date, seed and runs."""
    manifest = campaign.results.manifest
    facts = (
        *(manifest.tool_version, *manifest.servers, *manifest.clients, *map(repr, manifest.test_cases)),
        *(f"{name} {image.id}" for name, image in sorted(manifest.images.items())),
        *([manifest.time] if manifest.clock is Clock.VIRTUAL else []),
    )
    return hashlib.sha256("\n".join(facts).encode("utf-8", "replace")).hexdigest()[:16]


def _compliance(campaign: SiteCampaign) -> dict[str, str]:
    """Compliance of each implementation: ``yes``, ``not as client: …``, or ``–`` if it was not checked."""
    faults_of: dict[str, list[str]] = {each.name: [] for each in campaign.results.manifest.implementations}
    for found in campaign.results.compliance:
        faults_of.setdefault(found.implementation, []).append(
            "" if found.compliant else f"not as {found.role.value}: {found.reason}"
        )
    return {name: "; ".join(filter(None, faults)) or ("yes" if faults else "–") for name, faults in faults_of.items()}


def _data(site: Site, campaign: SiteCampaign, *, whole: bool) -> None:
    files = {
        "result.json": document(campaign.results, campaign.cells.values()),
        "repetitions.csv": cell_view.as_csv(campaign.results.results),
        "reasons.json": json.dumps(failures.reasons(campaign), ensure_ascii=False).encode("utf-8", "replace"),
        "attempts.csv": cell_view.attempts_as_csv(each for found in campaign.attempts.values() for each in found),
        "result.schema.json": SCHEMA_FILE.read_bytes(),
    }
    sums = {name: hashlib.sha256(content).hexdigest() for name, content in files.items()}
    files["sha256sums.txt"] = "".join(f"{digest}  {name}\n" for name, digest in sums.items()).encode()
    for name, content in files.items():
        site.put(address.raw(campaign.folder, name), content)
    table = [
        {"name": name, "what": _WHAT[name], "size": len(content), "sum": sums.get(name, "")}
        for name, content in files.items()
    ]
    site.show(address.campaign(campaign.folder, "data"), "data.html", campaign, "Data", files=table, whole=whole)


def write_list(site: Site) -> None:
    """The page with all campaigns, and the list that start pages offer."""
    many = [listed(each) for each in site.campaigns]
    rows = [{"listed": one, "campaign": each} for one, each in zip(many, site.campaigns, strict=True)]
    badges = [(each.name, each.folder) for each in site.campaigns[0].manifest.implementations]
    site.put(address.CHOICES, _choices(rows[:_MOST_CHOICES]))
    site.show(address.CAMPAIGNS, "campaigns.html", None, "Campaigns", rows=rows, badges=badges)


def _choices(rows: Iterable[Mapping[str, Any]]) -> bytes:
    """Address and words of each campaign as a script, for browsers fetch no data from files."""
    choices = []
    for row in rows:
        each, kind = row["listed"], ", placebo" if row["campaign"].manifest.placebo else ""
        words = f"{day(each.started)}{kind}: {each.size}, {each.tests}, {each.share} succeeded"
        choices.append([str(each.address), words])
    return f"window.campaignChoices = {json.dumps(choices)};\n".encode()
