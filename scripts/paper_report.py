"""Write docs/paper/ from the campaigns of `make paper`: data set, tables, figures and text.

  make paper-report                              # from results/paper
  make paper-report RESULTS=DIR                  # from another directory of campaigns
  .venv/bin/python scripts/paper_report.py       # from the data set in docs/paper/data alone

The data set holds the result.json of each campaign, compressed, and the checksums of these files. All numbers of the
report come from the data set, except those of the paper, which are constants of this script.
"""

# ruff: noqa: E402, T201 - a script

from __future__ import annotations

import argparse
import gzip
import hashlib
import re
import shutil
import statistics
import sys
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from interop.model.clock import Clock
from interop.model.emulated_link import EmulatedLink
from interop.model.outcomes import Outcome
from interop.model.results import ResultSet, RunResult
from interop.model.test_case import TestCase
from interop.model.units import byte_size
from interop.report import campaign_tables
from interop.report.plot_request import CampaignResults, PlotRequest
from interop.report.table import Column, Table, Unit, render
from interop.results.document import document, parse_document
from interop.results.store import JOURNAL, load
from interop.statistics.overview import THRESHOLD, Scenario, family, scenario
from interop.statistics.samples import EFFICIENCY, samples
from interop.statistics.variance import decompose
from plots.discovery import draw
from scripts.gallery import lighten

DATA, FIGURES, PAGE, CHECKSUMS = "data", "figures", "index.md", "SHA256SUMS"
SUFFIX = ".json.gz"
MATRIX, VARIANTS = "matrix", "variants"
PLOTS = ("cdf", "heatmap", "violin", "two-case-scatter")
PAPER_FIGURES = {"cdf": "Figure 3", "heatmap": "Figure 4", "violin": "Figure 5", "two-case-scatter": "Figure 6"}


@dataclass(frozen=True)
class PaperRow:
    """A row of Table II of arXiv 2202.08228."""

    mean: float
    """Goodput, bit/s, as the next."""
    maximum: float
    timeouts: int
    """Pairs, as the next."""
    failures: int


TABLE_II: Mapping[str, PaperRow] = {
    "terrestrial": PaperRow(15.11e6, 19.2e6, 12, 1),
    "sat": PaperRow(5.05e6, 12.0e6, 3, 6),
    "satloss": PaperRow(3.06e6, 11.5e6, 13, 17),
}
PAPER_PAIRS = 13 * 14
PAPER_CONGESTION_CONTROL: Mapping[str, str] = {
    "aioquic": "NewReno", "kwik": "NewReno", "lsquic": "BBR", "msquic": "CUBIC", "neqo": "CUBIC or NewReno",
    "ngtcp2": "CUBIC", "picoquic": "BBR", "quic-go": "CUBIC or Reno", "quiche": "CUBIC",
}  # fmt: skip
"""Table III of the paper: implementations that we measure, too."""


CONTROLS: Mapping[str, str] = {"reno": "Reno", "newreno": "Reno", "cubic": "CUBIC", "bbr": "BBR"}
"""Variants of servers that several implementations have, and their congestion control."""


LOST = (Outcome.FAILED, Outcome.TIMEOUT)
EXAMINED: Mapping[tuple[str, str], str] = {
    ("nginx", "quinn"): (
        "nginx with quinn: quinn closes a connection if too many parts of a stream are missing. After slow start, the "
        "queue drops many packets of nginx."
    ),
    ("haproxy", "quinn"): (
        "haproxy with quinn: haproxy gives up the connection without a CONNECTION_CLOSE, and answers with stateless "
        "resets from then on. It does so at its timeout for idle clients, although quinn sends acknowledgements. Other "
        "clients of haproxy take longer and succeed. The cause is unknown."
    ),
    ("kwik", "kwik"): (
        "kwik with kwik: the server sends at a constant low rate until the time limit, as with other clients. Without "
        "a key log, the traces do not show more."
    ),
}
"""What the traces of pairs show, beyond the reasons in the results, by server and client."""


# ---- the data set ---------------------------------------------------------------------------


def collect(results: Path, target: Path) -> list[Path]:
    """Write the result.json of each campaign below ``results`` that has measured something; the files."""
    target.mkdir(parents=True, exist_ok=True)
    written = []
    for journal in sorted(results.glob(f"*/{JOURNAL}")):
        found = load(journal.parent).result_set
        if found.results:
            path = target / f"{journal.parent.name}{SUFFIX}"
            path.write_bytes(gzip.compress(document(found), mtime=0))
            written.append(path)
    lines = (f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n" for path in stored(target))
    (target / CHECKSUMS).write_text("".join(lines), encoding="ascii")
    return written


def stored(data: Path) -> list[Path]:
    """Files of the data set, by campaign and seed."""
    return sorted(data.glob(f"*{SUFFIX}"), key=lambda path: (_part(path), _seed(path)))


def _part(path: Path) -> str:
    return re.sub(r"-\d+$", "", path.name.removesuffix(SUFFIX))


def _seed(path: Path) -> int:
    found = re.search(r"-(\d+)$", path.name.removesuffix(SUFFIX))
    return int(found[1]) if found else 0


def read(data: Path) -> dict[str, ResultSet]:
    """Parts of `make paper`; the campaigns of all seeds are the repetitions of one."""
    found: dict[str, list[ResultSet]] = {}
    for path in stored(data):
        found.setdefault(_part(path), []).append(parse_document(path, gzip.decompress(path.read_bytes())))
    return {part: combined(campaigns) for part, campaigns in found.items()}


def combined(campaigns: Sequence[ResultSet]) -> ResultSet:
    """Campaigns with the same runs but other seeds, as one; the first one's repetitions come first."""
    manifest, results, before = campaigns[0].manifest, list[RunResult](), 0
    for campaign in campaigns:
        if campaign.manifest.time != manifest.time:
            raise ValueError(f"{manifest.id} and {campaign.manifest.id} have different clocks.")
        results += [replace(each, repetition=each.repetition + before) for each in campaign.results]
        before += max((case.repetitions for case in campaign.manifest.test_cases), default=0)
    cases = tuple(replace(case, repetitions=case.repetitions * len(campaigns)) for case in manifest.test_cases)
    planned = sum(campaign.manifest.planned_runs for campaign in campaigns)
    manifest = replace(manifest, test_cases=cases, planned_runs=planned)
    return replace(campaigns[0], manifest=manifest, results=tuple(results))


# ---- tables ---------------------------------------------------------------------------------


def beside_the_paper(results: ResultSet) -> Table:
    """Table II: our rows and those of the paper."""
    columns = (
        Column("test case"), Column("measured by"), Column("mean", Unit.RATE), Column("median", Unit.RATE),
        Column("max", Unit.RATE, 1), Column("T", Unit.COUNT), Column("×", Unit.COUNT), Column("pairs", Unit.COUNT),
    )  # fmt: skip
    rows = list[tuple[float | int | str | None, ...]]()
    for case in results.manifest.test_cases:
        row = scenario(results, case)
        middle = statistics.median(most(each, case) for each in results.results if each.test_case == case.name)
        counts = (row.timeouts, row.failures, row.pairs)
        rows.append((case.name, "quicsat, all servers", row.mean, middle, row.maximum, *counts))
        if shared := [name for name in results.manifest.servers if name in PAPER_CONGESTION_CONTROL]:
            same = replace(results, results=tuple(each for each in results.results if each.server in shared))
            same = replace(same, manifest=replace(results.manifest, servers=tuple(shared)))
            row = scenario(same, case)
            middle = statistics.median(most(each, case) for each in same.results if each.test_case == case.name)
            counts = (row.timeouts, row.failures, row.pairs)
            rows.append(
                (
                    case.name,
                    f"quicsat, {len(shared)} {'server' if len(shared) == 1 else 'servers'} of the paper",
                    row.mean,
                    middle,
                    row.maximum,
                    *counts,
                )
            )
        if paper := TABLE_II.get(case.name):
            mean, maximum = paper.mean, paper.maximum
            rows.append((case.name, "paper", mean, None, maximum, paper.timeouts, paper.failures, PAPER_PAIRS))
    note = (
        "Means and maxima are over successful repetitions, and the median is over all. T (timed out) and × (failed) "
        "count pairs by their first repetition that did not succeed: with more repetitions, there are more of them."
    )
    return Table("table-ii", "Table II", columns, tuple(rows), (note,))


def congestion_controls(results: ResultSet) -> Table:
    """The default congestion control of each server, then and now, and its mean efficiency over each link."""
    known = {each.name: each for each in results.manifest.implementations}
    cases = results.manifest.test_cases
    columns = (
        Column("server"), Column("version"), Column("congestion control, paper"), Column("congestion control, now"),
        *(Column(case.name, Unit.RATE) for case in cases), Column("succeeded"),
    )  # fmt: skip
    rows = [
        (
            name,
            results.manifest.images[name].version if name in results.manifest.images else "",
            PAPER_CONGESTION_CONTROL.get(name, "not measured"),
            family(known.get(name)),
            *(mean_of(results, case, [name]) for case in cases),
            _succeeded([each for each in results.results if each.server == name]),
        )
        for name in results.manifest.servers
    ]
    note = (
        "Goodput is the mean of the successful runs of a server with all clients. No value: none succeeded. Reno and "
        "NewReno are what the implementations call the same algorithm."
    )
    return Table("servers", "Servers and their congestion control", columns, tuple(rows), (note,))


def clients(results: ResultSet) -> Table:
    """The mean goodput of each client over each link, with the servers that always succeeded there."""
    cases = results.manifest.test_cases
    columns = (Column("client"), *(Column(case.name, Unit.RATE) for case in cases), Column("succeeded"))
    servers = {case.name: [name for name in results.manifest.servers if _always(results, case, name)] for case in cases}
    rows = [
        (
            name,
            *(mean_of(results, case, servers[case.name], client=name) for case in cases),
            _succeeded([each for each in results.results if each.client == name]),
        )
        for name in results.manifest.clients
    ]
    counts = ", ".join(f"{len(servers[case.name])} over `{case.name}`" for case in cases)
    note = f"Goodput is the mean over the servers that succeeded with all clients ({counts})."
    return Table("clients", "Clients", columns, tuple(rows), (note,))


def _always(results: ResultSet, case: TestCase, server: str) -> bool:
    found = [each for each in results.results if each.server == server and each.test_case == case.name]
    return bool(found) and all(each.verdict.outcome is Outcome.SUCCEEDED for each in found)


def _succeeded(runs: Sequence[RunResult]) -> str:
    return f"{sum(each.verdict.outcome is Outcome.SUCCEEDED for each in runs)} of {len(runs)}"


def mean_of(results: ResultSet, case: TestCase, servers: Collection[str], client: str = "") -> float | None:
    """Mean goodput of the successful runs of servers, with one client or all, in a test case, bit/s."""
    found = [
        each.measurement.values["goodput"]
        for each in results.results
        if each.test_case == case.name
        and each.measurement is not None
        and each.verdict.outcome is Outcome.SUCCEEDED
        and each.server in servers
        and (each.client == client or not client)
    ]
    return statistics.fmean(found) if found else None


def not_successful(results: ResultSet) -> Table:
    """Runs that did not succeed, one row for those with the same reason."""
    columns = (Column("test case"), Column("outcome"), Column("reason"), Column("runs", Unit.COUNT), Column("pairs"))
    groups: dict[tuple[str, str, str], list[tuple[str, str]]] = {}
    for each in results.results:
        if each.verdict.outcome is not Outcome.SUCCEEDED:
            reason = without_numbers(each.verdict.reason)
            groups.setdefault((each.test_case, each.verdict.outcome.value, reason), []).append(
                (each.server, each.client)
            )
    rows = [(*group, len(pairs), named(pairs, results.manifest.clients)) for group, pairs in groups.items()]
    note = "Pairs are named as server with client. Reasons that differ only in numbers are the same here."
    return Table("failures", "Runs without success", columns, tuple(rows), (note,))


def without_numbers(reason: str) -> str:
    """A reason with ``N`` in place of each number or list of numbers, so that equal reasons can be counted."""
    return re.sub(r"N(, N)+( and N more)?", "N", re.sub(r"\d+(\.\d+)?", "N", reason))


def named(pairs: Sequence[tuple[str, str]], clients: Sequence[str]) -> str:
    """Servers and clients in words, by server."""
    by_server: dict[str, list[str]] = {}
    for server, client in dict.fromkeys(pairs):
        by_server.setdefault(server, []).append(client)
    return "; ".join(
        f"{server} with {'all clients' if set(them) == set(clients) else ', '.join(them)}"
        for server, them in by_server.items()
    )


# ---- the page -------------------------------------------------------------------------------


def page(parts: Mapping[str, ResultSet], figures: Sequence[tuple[str, str, str]], size: str) -> str:
    """Markdown of the report; ``figures``: (file name, title, caption); ``size``: of the data set, in words."""
    lines = ["## Figures", ""]
    for file, title, caption in figures:
        lines += [f"### {title}", "", f"![{title}]({FIGURES}/{file})", "", caption, ""]
    if VARIANTS in parts:
        lines = [*algorithm_or_implementation(parts[VARIANTS]), "", *lines]
    return text(parts[MATRIX]) + "\n".join([*lines, *data_sheet(parts, size)]).rstrip() + "\n"


def text(results: ResultSet) -> str:
    """Markdown of the part before the figures."""
    lines = [
        "# arXiv 2202.08228, measured again", "",
        *introduction(results), "",
        "## Findings", "",
        *findings(results), "",
        "## Method", "",
        *method(results),
        *rendered(links(results)),
        "## Goodput per link", "",
        *rendered(beside_the_paper(results)),
        *differences(results), "",
        "## Servers and clients", "",
        *rendered(congestion_controls(results)),
        *rendered(clients(results)),
        *clusters(results), "",
        "## Influence of server and client", "",
        *rendered(campaign_tables.variance(results, results.manifest.test_cases)),
        "## Reasons for failures", "",
        *failures(results), "",
        "## What these measurements do not show", "",
        *limitations(results), "",
    ]  # fmt: skip
    return "\n".join(lines) + "\n"


def rendered(table: Table) -> list[str]:
    """A table and an empty line."""
    return [render(table, "markdown"), ""]


def introduction(results: ResultSet) -> Iterator[str]:
    """What was measured, with what, and what it took."""
    manifest = results.manifest
    seeds = max((each.repetition for each in results.results), default=0)
    began = min(each.evidence.started for each in results.results)
    done, planned = len(results.results), manifest.planned_runs
    yield (
        f"This page repeats the measurements of [arXiv 2202.08228](https://arxiv.org/abs/2202.08228), *the paper*, "
        f"with {len(manifest.servers)} servers and {len(manifest.clients)} clients over the links "
        f"{', '.join(f'`{case.name}`' for case in manifest.test_cases)}. The paper measured 14 servers and 13 clients "
        "over the same links, ten times in real time."
    )
    yield ""
    yield (
        f"`make paper` made the measurements from {began[:10]} on in {manifest.time}, with {seeds} "
        f"{'seed' if seeds == 1 else 'seeds'}. Of {planned} planned runs, {done} have a result"
        f"{'' if done == planned else '; the other runs have not been measured yet'}. "
        f"`make paper-report` computed all numbers and drew all figures on this page from the [data set](#data-set)."
    )
    last = max(each.evidence.started for each in results.results)
    phases = [sum(each.evidence.phases.values()) for each in results.results]
    yield ""
    yield (
        f"A run took {statistics.median(phases):.1f} s of wall-clock time at the median. The sum over all runs is "
        f"{sum(phases) / 3600:.1f} h, with two runs at a time on two cores, next to other programs. The first run "
        f"began at {moment(began)} UTC, and the last one at {moment(last)}."
    )


def findings(results: ResultSet) -> Iterator[str]:
    """The paper's conclusions, and whether they hold here, as a list."""
    means = {case.name: scenario(results, case).mean for case in results.manifest.test_cases}
    rates = {case.name: case.emulated.forward_rate for case in results.manifest.test_cases}
    shares = [f"{100 * mean / rates[name]:.0f} % over `{name}`" for name, mean in means.items() if mean is not None]
    if shares:
        yield (
            "- Goodput is far below the rate of a satellite link. The mean efficiency of the successful runs is "
            f"{', '.join(shares)}. See [Table II](#table-ii)."
        )
    parts = []
    for case in results.manifest.test_cases:
        found = decompose(samples(results, case.name, EFFICIENCY))
        server = next((part for part in found.shares if part.source == "server"), None) if found else None
        if server is not None:
            parts.append(
                f"{100 * server.share:.0f} % over `{case.name}` ({100 * server.low:.0f} to {100 * server.high:.0f} %)"
            )
    if parts:
        yield (
            "- The server decides the goodput of a pair. Its share of the variance of the logarithm of goodput is "
            f"{', '.join(parts)}. See [Influence of server and client](#influence-of-server-and-client)."
        )
    fast = {name: len(set(servers)) for name, (servers, _) in exceeding(results).items() if servers}
    if fast:
        yield (
            f"- Over `satloss`, {sum(fast.values())} servers exceed an efficiency of 10 % with at least one client; "
            f"{fast.get('BBR', 0)} of them use BBR. See [Servers and clients](#servers-and-clients)."
        )


def method(results: ResultSet) -> Iterator[str]:
    """How the runs were made, as a list."""
    sizes = sorted({size for case in results.manifest.test_cases for size in case.file_sizes})
    yield (
        f"- In each run, the client downloads {' or '.join(byte_size(size) for size in sizes)} from the server in one "
        "connection. As in the paper, goodput is the size divided by the time from the first to the last 1-RTT packet "
        "of the server in the client's trace, so that it does not include the handshake. Efficiency is goodput divided "
        "by the rate of the forward link."
    )
    yield (
        "- The links are emulated with ns-3. A queue of the paper's simulator held up to 125 packets; ours hold "
        "exactly the number in the table below."
    )
    yield (
        "- All images are builds from packages, not the images of the QUIC Interop Runner, which the paper measured. "
        "[Servers and their congestion control](#servers-and-their-congestion-control) lists the versions. "
        "[Implementations](../guide/implementations.md) explains how the images are built, and the data set names the "
        "sources and patches of each. Client and server are the programs that come with an implementation, or ours "
        "around its library."
    )
    if versions := results.manifest.versions:
        yield (f"- Versions: quicsat {versions.quicsat}, ns-3 from {versions.ns3}, Docker engine {versions.engine}.")
    if results.manifest.clock is Clock.VIRTUAL:
        yield (
            "- In [virtual time](../guide/virtual-time.md), other programs on the machine have no effect. Each system "
            "call of an endpoint takes a [time that we measured for its implementation]"
            "(../reference/implementations.md#cpu-cost). [Virtual and real time compared]"
            "(../measurements/virtual-time.md) shows how far the results agree, and which implementations do not "
            "repeat their packets with the same seed."
        )
    yield (
        "- All pairs have the same seed in a repetition. If the link drops, for example, the 22nd packet of one pair, "
        "it drops the 22nd packet of all pairs. Therefore, the results of different pairs are not independent."
    )
    yield ""


def links(results: ResultSet) -> Table:
    """Delay, rates, queues and loss of each link, and the time limit of a run."""
    columns = (
        Column("link"), Column("in figures"), Column("round-trip time [ms]", Unit.COUNT),
        Column("forward rate", Unit.RATE, 0), Column("return rate", Unit.RATE, 0), Column("queues [packets]"),
        Column("loss, each way", Unit.SHARE, 0),
        Column("time limit [s]", Unit.COUNT),
    )  # fmt: skip
    rows = []
    for case in results.manifest.test_cases:
        link = case.link
        assert isinstance(link, EmulatedLink)
        loss = getattr(link.forward_loss, "rate", 0.0)
        trip = round(1000 * (link.forward_delay + link.return_delay))
        queues = f"{link.forward_queue} and {link.return_queue}"
        rows.append(
            (case.name, case.abbreviation, trip, link.forward_rate, link.return_rate, queues, loss, round(case.timeout))
        )
    return Table("links", "Links", columns, tuple(rows), ())


def limitations(results: ResultSet) -> Iterator[str]:
    """What a reader must not conclude, as a list."""
    if max((each.repetition for each in results.results), default=0) == 1:
        yield (
            "- With one seed, there is one sequence of lost packets. The spread over seeds is unknown, and so is the "
            "part of the interaction of server and client that is chance. Differences between two servers over a link "
            "with loss may be due to this sequence."
        )
    yield (
        "- Means do not include runs that did not succeed, like those of the paper. A server that fails to finish with "
        "some clients therefore looks better than it is. The medians and bounds in [Table II](#table-ii) include all "
        "runs. The shares of the variance describe only the servers that succeeded."
    )
    yield (
        "- Differences from the paper have several causes that these measurements do not separate: newer versions, "
        "other builds, other implementations, smaller queues, and the clock."
    )
    yield (
        "- In these runs, each server has its default congestion control, so they do not separate the congestion "
        "control from the rest of an implementation."
    )


def moment(stamp: str) -> str:
    """Date and minute of an RFC 3339 stamp."""
    return datetime.fromisoformat(stamp).strftime("%Y-%m-%d %H:%M")


def differences(results: ResultSet) -> Iterator[str]:
    """A sentence per link, from the numbers alone."""
    for case in results.manifest.test_cases:
        row, paper = scenario(results, case), TABLE_II.get(case.name)
        if paper is None or row.mean is None or row.maximum is None:
            continue
        yield (
            f"- **{case.name}**: the mean goodput is {row.mean / 1e6:.2f} Mbit/s, "
            f"{_relative(row.mean, paper.mean)} the paper's mean. The maximum is {row.maximum / 1e6:.1f} Mbit/s, "
            f"{_relative(row.maximum, paper.maximum)} the paper's. {_outcomes(row, paper)}"
            f"{_with_timeouts(results, case, row)}"
        )


def _relative(value: float, other: float) -> str:
    change = 100 * (value / other - 1)
    return f"{abs(change):.0f} % {'above' if change > 0 else 'below'}"


def _outcomes(row: Scenario, paper: PaperRow) -> str:
    ours = 100 * (row.timeouts + row.failures) / row.pairs
    theirs = 100 * (paper.timeouts + paper.failures) / PAPER_PAIRS
    return (
        f"{ours:.1f} % of the pairs timed out or failed; in the paper, at least one of ten repetitions did so in "
        f"{theirs:.1f} % of the pairs."
    )


def _with_timeouts(results: ResultSet, case: TestCase, row: Scenario) -> str:
    """The mean of all runs, as a bound."""
    if not row.timeouts + row.failures:
        return ""
    bound = statistics.fmean(most(each, case) for each in results.results if each.test_case == case.name) / 1e6
    return (
        f" If a run that timed out counts as the whole file at the time limit, and any other run without success as 0, "
        f"the mean over all runs is at most {bound:.2f} Mbit/s."
    )


def most(run: RunResult, case: TestCase) -> float:
    """Goodput of a run, bit/s, or an upper bound if it did not succeed."""
    if run.verdict.outcome is Outcome.SUCCEEDED and run.measurement is not None:
        return run.measurement.values["goodput"]
    return sum(case.file_sizes) * 8 / case.timeout if run.verdict.outcome is Outcome.TIMEOUT else 0.0


def exceeding(results: ResultSet) -> dict[str, tuple[list[str], int]]:
    """Servers of runs above the paper's threshold over satloss, and number of all runs, by congestion control."""
    case = next((each for each in results.manifest.test_cases if each.name == "satloss"), None)
    known = {each.name: each for each in results.manifest.implementations}
    found: dict[str, tuple[list[str], int]] = {}
    for each in results.results:
        if case is not None and each.test_case == case.name:
            control = family(known.get(each.server)).replace("NewReno", "Reno")
            servers, number = found.get(control, ([], 0))
            above = most(each, case) > THRESHOLD * case.emulated.forward_rate
            found[control] = [*servers, each.server] if above else servers, number + 1
    return dict(sorted(found.items()))


def clusters(results: ResultSet) -> Iterator[str]:
    """Which servers exceed the paper's threshold over satloss, by congestion control (its section IV-C)."""
    found = exceeding(results)
    if not found:
        return
    yield (
        "The paper found that only servers with CUBIC or BBR exceed an efficiency of 10 % over `satloss`. Here, the "
        "following numbers of runs exceed it, by the congestion control of the server. Runs that timed out count as "
        "slower:"
    )
    yield ""
    for name, (servers, number) in found.items():
        which = f" (servers: {', '.join(dict.fromkeys(servers))})" if servers else ""
        yield f"- {name}: {len(servers)} of {number}{which}"


def failures(results: ResultSet) -> Iterator[str]:
    """How many runs succeeded, and the reasons of the others."""
    outcomes = Counter(each.verdict.outcome for each in results.results)
    excluded = sum(each.attempt - 1 for each in results.results)
    yield (
        f"Of {len(results.results)} runs, {outcomes[Outcome.SUCCEEDED]} succeeded "
        f"({100 * outcomes[Outcome.SUCCEEDED] / len(results.results):.1f} %). quicsat repeated {excluded} attempts."
    )
    yield ""
    yield from rendered(not_successful(results))
    unsuccessful = {(each.server, each.client) for each in results.results if each.verdict.outcome in LOST}
    yield from (f"- {text}" for pair, text in EXAMINED.items() if pair in unsuccessful)


def algorithm_or_implementation(results: ResultSet) -> Iterator[str]:
    """What changes with the congestion control of a server, and what with its implementation."""
    yield "## Algorithm or implementation"
    yield ""
    yield (
        f"Servers with different congestion controls, each with the clients {', '.join(results.manifest.clients)}. "
        "Variants select the congestion control and nothing else. A mean with ≤ is a bound: it includes runs that "
        "timed out, as the whole file at the time limit, or failed, as 0."
    )
    yield ""
    for case in results.manifest.test_cases:
        means = means_of_controls(results, case)
        names = list(dict.fromkeys(name for name, _ in means))
        columns = (Column("server"), *(Column(f"{control} [Mbit/s]") for control in dict.fromkeys(CONTROLS.values())))
        rows = [
            (name, *(_mean_in_words(means.get((name, control))) for control in dict.fromkeys(CONTROLS.values())))
            for name in names
        ]
        title = f"Congestion controls over {case.name}"
        yield from rendered(Table("controls", title, columns, tuple(rows), ()))
        yield from _ratios(means, case)
        yield from _drops(results, case)
        yield ""
    yield (
        "picoquic's CUBIC hardly slows down if the link loses single packets: it reduces its window only if a smoothed "
        "loss rate exceeds a threshold (`picoquic_hystart_loss_test` in its `cubic.c`). CUBIC as in [RFC "
        "9438](https://www.rfc-editor.org/rfc/rfc9438#section-4.6) reduces it after every loss."
    )


def _drops(results: ResultSet, case: TestCase) -> Iterator[str]:
    """Names the server that lost the largest share of its packets in the queue."""
    shares: dict[str, list[float]] = {}
    for each in results.results:
        if each.test_case == case.name and each.measurement is not None:
            share = each.measurement.values.get("queue_loss")
            if share is not None:
                shares.setdefault(each.server, []).append(share)
    if not shares:
        return
    means = {name: statistics.fmean(found) for name, found in shares.items()}
    first = max(means, key=means.__getitem__)
    yield (
        f"- The queue dropped {100 * means[first]:.0f} % of the packets of {first}, the largest share of all servers. "
        f"The median over the servers is {100 * statistics.median(means.values()):.1f} %."
    )


def means_of_controls(results: ResultSet, case: TestCase) -> dict[tuple[str, str], tuple[float, bool]]:
    """Mean goodput over all runs of a server and congestion control, bit/s, and whether it is only a bound."""
    runs: dict[tuple[str, str], list[RunResult]] = {}
    for each in results.results:
        name, _, variant = each.server.partition(":")
        if each.test_case == case.name and variant in CONTROLS:
            runs.setdefault((name, CONTROLS[variant]), []).append(each)
    return {
        key: (
            statistics.fmean(most(each, case) for each in found),
            any(each.verdict.outcome is not Outcome.SUCCEEDED for each in found),
        )
        for key, found in runs.items()
    }


def _mean_in_words(mean: tuple[float, bool] | None) -> str:
    return "" if mean is None else f"{'≤ ' if mean[1] else ''}{mean[0] / 1e6:.2f}"


def _ratios(means: Mapping[tuple[str, str], tuple[float, bool]], case: TestCase) -> Iterator[str]:
    """By which factor goodput changes with one of the two while the other is the same."""
    by_name: dict[str, list[float]] = {}
    by_control: dict[str, list[float]] = {}
    for (name, control), (mean, _) in means.items():
        by_name.setdefault(name, []).append(mean)
        by_control.setdefault(control, []).append(mean)
    factors = [max(found) / min(found) for found in by_name.values() if len(found) > 1 and min(found) > 0]
    if factors:
        yield (
            f"- Over `{case.name}`, the fastest congestion control of an implementation has {min(factors):.1f} to "
            f"{max(factors):.1f} times the goodput of its slowest (median {statistics.median(factors):.1f}, "
            f"{len(factors)} implementations)."
        )
    for control, found in by_control.items():
        if len(found) > 1 and min(found) > 0:
            yield (
                f"- With {control}, the fastest implementation has {max(found) / min(found):.1f} times the goodput of "
                f"the slowest ({len(found)} implementations)."
            )


def data_sheet(parts: Mapping[str, ResultSet], size: str) -> list[str]:
    """What the data set holds, where it comes from, and what it must not be used for."""
    columns = (Column("campaigns"), Column("clock"), Column("runs", Unit.COUNT), Column("planned", Unit.COUNT))
    rows = tuple(
        (part, each.manifest.time, len(each.results), each.manifest.planned_runs) for part, each in parts.items()
    )
    return [
        "## Data set",
        "",
        (
            f"[`docs/paper/data`]({DATA}/{CHECKSUMS}) holds the `result.json` of each campaign, compressed with gzip, "
            f"and their SHA-256 checksums ({size}). The [result schema](../reference/result.md) describes all fields."
        ),
        "",
        *rendered(Table("data", "Campaigns", columns, rows)),
        (
            "- **Origin:** `make paper` on a virtual machine with two cores. Each result names the kernel, the Docker "
            "engine and the images; each campaign names the versions, sources and patches of the implementations."
        ),
        (
            "- **Processing:** none. Traces, logs and qlogs are not included. With the same seed and the same images, "
            "virtual time makes most of them again ([Virtual time](../guide/virtual-time.md))."
        ),
        (
            "- **Not suitable for:** the CPU efficiency of implementations. In virtual time, a system call takes a "
            "fixed time."
        ),
        (
            "- **Website and PDF:** `make docs` builds the results website of the matrix in `build/docs/sample`, and "
            "this page as `build/docs/paper/report.pdf`."
        ),
        "- **Licence:** [CC BY 4.0](https://creativecommons.org/licenses/by/4.0/) for the data and the figures.",
    ]


def draw_figures(results: ResultSet, target: Path) -> list[tuple[str, str, str]]:
    """(file name, title, caption) of each figure; the directory is written again."""
    shutil.rmtree(target, ignore_errors=True)
    gallery = draw(PlotRequest((CampaignResults(MATRIX, results),), target, PLOTS, ("png",)))
    for skipped in gallery.skipped:
        print(f"not drawn: {skipped}")
    for file in gallery.files:
        lighten(file)
    return [
        (file.name, f"{figure_of(file)}: {title}", caption)
        for file, (_, title, caption) in zip(gallery.files, gallery.captions, strict=True)
    ]


def figure_of(file: Path) -> str:
    """The paper's figure that shows the same as a file: ``Figure 4``."""
    return next(figure for plot, figure in PAPER_FIGURES.items() if file.stem.startswith(plot))


def size_of(data: Path) -> str:
    """Number and size of the files of the data set."""
    files = stored(data)
    return f"{len(files)} {'file' if len(files) == 1 else 'files'}, {sum(f.stat().st_size for f in files) / 1e6:.1f} MB"


def main(arguments: Sequence[str] | None = None) -> int:
    """Collect the data set where a directory of campaigns is given, then write figures and page; the exit status."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("results", type=Path, nargs="?", help="directory of campaigns (default: only the data set)")
    parser.add_argument("--output", type=Path, default=ROOT / "docs" / "paper", help="default: docs/paper")
    options = parser.parse_args(arguments)
    data = options.output / DATA
    if options.results is not None and not collect(options.results, data):
        print(f"{options.results}: no campaign has a result yet; `make paper` measures them.", file=sys.stderr)
        return 2
    parts = read(data)
    if MATRIX not in parts:
        print(f"{data}: has no campaign of the part {MATRIX}; `make paper` measures it.", file=sys.stderr)
        return 2
    figures = draw_figures(parts[MATRIX], options.output / FIGURES)
    (options.output / PAGE).write_text(page(parts, figures, size_of(data)), encoding="utf-8")
    print(f"{options.output / PAGE}: {len(parts)} parts, {len(figures)} figures")
    return 0


if __name__ == "__main__":
    sys.exit(main())
