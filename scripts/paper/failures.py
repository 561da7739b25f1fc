"""Runs that did not succeed, and why."""

from __future__ import annotations

import re
import statistics
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from bench.paper import CLIENTS_OF_VARIANTS
from interop.model.outcomes import Outcome
from interop.model.results import ResultSet, RunResult
from interop.model.units import KIB, byte_size
from interop.report.table import Column, Table, Unit
from interop.statistics.facts import fact_of
from interop.statistics.samples import value_of
from scripts.paper.data_set import seeds_in_words
from scripts.paper.goodput import arrived, known, of_case
from scripts.paper.lines import rendered
from scripts.paper.theory import below_the_limit
from scripts.paper.words import counted, listed, part_of

LOST = (Outcome.FAILED, Outcome.TIMEOUT)


EXAMINED: Mapping[tuple[str, str], str] = {
    ("nginx", "quinn"): (
        "nginx with quinn: quinn closes a connection if too many parts of a stream are missing. After slow start, the "
        "queue drops many of nginx's packets."
    ),
    ("haproxy", "quinn"): (
        "haproxy with quinn: haproxy abandons the connection without a CONNECTION_CLOSE frame, and answers with "
        "stateless resets from then on. It does so when its timeout for idle clients expires, although quinn keeps "
        "sending acknowledgements. quinn announces a timeout of 30 s and haproxy one of 60 s; the shorter one applies, "
        "so the first reset comes more than 30 s after the start. According to the source code of haproxy 3.0.11 "
        "(`quic_rx.c`), only ack-eliciting packets restart this timer, although any packet that is processed "
        "successfully should restart it ([RFC 9000, section "
        "10.1](https://www.rfc-editor.org/rfc/rfc9000#section-10.1)). quinn's windows are larger than the file, so "
        "quinn probably has nothing to send but acknowledgements. Transfers from haproxy to other clients take longer, "
        "but succeed."
    ),
    ("kwik", "kwik"): (
        "kwik with kwik: the server sends at a constant low rate until the time limit, as it does with other clients. "
        "Without a key log, the traces do not show more."
    ),
}
"""What the traces of pairs show, beyond the reasons in the results, by server and client."""


def not_successful(results: ResultSet) -> Table:
    """Runs that did not succeed, one row for those with the same reason."""
    columns = (Column("test case"), Column("outcome"), Column("reason"), Column("runs", Unit.COUNT), Column("pairs"))
    groups: dict[tuple[str, str, str], list[RunResult]] = {}
    for each in results.results:
        if each.verdict.outcome is not Outcome.SUCCEEDED:
            reason = NUMBER.sub("N", told(each))
            groups.setdefault((each.test_case, each.verdict.outcome.value, reason), []).append(each)
    rows = [
        (
            case,
            outcome,
            with_ranges(list(map(told, runs))),
            len(runs),
            named([(run.server, run.client) for run in runs], results.manifest.clients),
        )
        for (case, outcome, _), runs in groups.items()
    ]
    notes = [
        (
            "Pairs are given as server with client. Runs whose reasons differ only in numbers share a row with the "
            "ranges of these numbers."
        ),
        *_far_below_windows(results),
    ]
    return Table("failures", "Unsuccessful runs", columns, tuple(rows), tuple(notes))


NUMBER = re.compile(r"\d+(?:\.\d+)?")
LISTED = re.compile(r"; the link lost packets \d+(, \d+)*( and \d+ more)?")
ON_AVERAGE = re.compile(r", with [\d.]+ \w+/s on average")
"""Over the time between the first and the last byte, which is not that of the goodput of such a run."""
FRAME = re.compile(r" \(frame \d+ of the (client|server)'s trace\)")
REWORDED = {
    "Congestion control kept": "The server kept",
    "so that the traces do not show": "so the traces do not show",
    "gave up the connection without a CONNECTION_CLOSE": "abandoned the connection without sending a CONNECTION_CLOSE",
    "CONNECTION_CLOSE: it sent": "CONNECTION_CLOSE frame: it sent",
}
"""Words of stored reasons, and those of the page; the median in flight alone does not tell what limited it."""
FLYING = re.compile(r"Congestion control kept ([\d.]+) KiB in flight \(median\)")


def told(run: RunResult) -> str:
    """The reason in the words of the page, without the numbers of single packets and frames."""
    reason = FRAME.sub("", ON_AVERAGE.sub("", LISTED.sub("", run.verdict.reason)))
    for stored, shown in REWORDED.items():
        reason = reason.replace(stored, shown)
    return reason


def with_ranges(reasons: Sequence[str]) -> str:
    """Reasons that differ in numbers only, as one: ``after 5 to 8.5 s``."""
    columns = zip(*(NUMBER.findall(reason) for reason in reasons), strict=True)
    ranges = (sorted(set(column), key=float) for column in columns)
    shown = (f"{column[0]} to {column[-1]}" if len(column) > 1 else column[0] for column in ranges)
    return NUMBER.sub(lambda _: next(shown), reasons[0])


def _far_below_windows(results: ResultSet) -> Iterator[str]:
    """Whether flow control can have limited the runs whose reason names what was in flight."""
    flying = [float(found[1]) * KIB for run in results.results if (found := FLYING.search(run.verdict.reason))]
    windows = [
        value
        for run in results.results
        for name in ("client.initial_max_data", "client.initial_max_stream_data_bidi_local")
        if isinstance(value := fact_of(run, name), int)
    ]
    if flying and windows and max(flying) < min(windows):
        yield (
            "In the timed-out runs that we could decrypt, the median amount of data in flight was at most "
            f"{byte_size(max(flying))}, far below the smallest announced window ({byte_size(min(windows))}). Flow "
            "control was therefore not the limit."
        )


def named(pairs: Sequence[tuple[str, str]], clients: Sequence[str]) -> str:
    """Servers and clients in words, by server."""
    by_server: dict[str, list[str]] = {}
    for server, client in dict.fromkeys(pairs):
        by_server.setdefault(server, []).append(client)
    return "; ".join(
        f"{server} with {'all clients' if set(them) == set(clients) else ', '.join(them)}"
        for server, them in by_server.items()
    )


def unfinished(results: ResultSet) -> Table:
    """What had arrived in runs that timed out, beside the successful runs of the same server, by test case."""
    columns = (
        Column("test case"), Column("server"), Column("timed out", Unit.COUNT), Column("arrived", Unit.SHARE, 0),
        Column("goodput, timed out", Unit.RATE), Column("succeeded", Unit.COUNT),
        Column("goodput, succeeded", Unit.RATE),
    )  # fmt: skip
    rows = []
    for case in results.manifest.test_cases:
        for server in results.manifest.servers:
            mine = [run for run in of_case(results, case) if run.server == server]
            late = [run for run in mine if run.verdict.outcome is Outcome.TIMEOUT]
            good = [run for run in mine if run.verdict.outcome is Outcome.SUCCEEDED]
            files = [size / sum(case.file_sizes) for run in late if (size := arrived(run)) is not None]
            if late:
                share = statistics.fmean(files) if files else None
                rows.append((case.name, server, len(late), share, _mean(late), len(good), _mean(good)))
    note = (
        "Values are means over all runs that timed out. *Arrived* is the share of the file that had arrived by the "
        f"time limit (see [Definitions](#definitions)).{_unknown(results)}"
    )
    return Table("unfinished", "Runs that timed out", columns, tuple(rows), (note,))


def _mean(runs: Sequence[RunResult]) -> float | None:
    values = known(runs)
    return statistics.fmean(values) if values else None


def _unknown(results: ResultSet) -> str:
    """Runs for which neither the trace nor a file shows how many bytes had arrived."""
    late = [run for run in results.results if run.verdict.outcome is Outcome.TIMEOUT and arrived(run) is None]
    if not late:
        return ""
    names = ", ".join(sorted({run.client for run in late}))
    return f" The means omit {counted(len(late), 'run')} with {names}, for which we do not know what had arrived."


def failures(results: ResultSet, longer: ResultSet | None = None) -> Iterator[str]:
    """How many runs succeeded, what the others received, and their reasons.

    ``longer``: runs of the servers that reach the time limit, with more time and the same losses.
    """
    outcomes = Counter(each.verdict.outcome for each in results.results)
    good, every = outcomes[Outcome.SUCCEEDED], len(results.results)
    yield f"Of {every} runs, {good} succeeded ({100 * good / every:.1f} %). {_repeated(results)}".strip()
    yield ""
    if outcomes[Outcome.TIMEOUT]:
        yield from rendered(unfinished(results))
        yield from results_of_the_limit(results)
        yield from with_more_time(results, longer)
    yield from rendered(not_successful(results))
    unsuccessful = {(each.server, each.client) for each in results.results if each.verdict.outcome in LOST}
    yield from (f"- {text}" for pair, text in EXAMINED.items() if pair in unsuccessful)


def results_of_the_limit(results: ResultSet) -> Iterator[str]:
    """Timeouts that the formula of Reno explains; nothing if there are none."""
    servers, rates = below_the_limit(results)
    late = [run for run in results.results if run.test_case == "satloss" and run.verdict.outcome is Outcome.TIMEOUT]
    if servers:
        count = sum(run.server in servers for run in late)
        yield (
            f"Over `satloss`, a run {rates} for {listed(servers)} (see [Formulas of Reno and "
            "CUBIC](#formulas-of-reno-and-cubic)). "
            f"{'This server accounts' if len(servers) == 1 else 'These servers account'} for "
            f"{part_of(count, len(late), 'run')} that timed out over this link. We attribute these timeouts to the "
            "time limit rather than to defects."
        )
        yield ""


def with_more_time(results: ResultSet, longer: ResultSet | None) -> Iterator[str]:
    """How many of the runs that reached the limit succeed with more time; nothing if they were not measured."""
    if longer is None:
        return
    [case] = longer.manifest.test_cases
    late = {
        (run.server, run.client, run.evidence.seed) for run in results.results if run.verdict.outcome is Outcome.TIMEOUT
    }
    same = [run for run in longer.results if (run.server, run.client, run.evidence.seed) in late]
    good = [run for run in same if run.verdict.outcome is Outcome.SUCCEEDED]
    times = sorted(value for run in good if (value := value_of(run, "completion_time")) is not None)
    if times:
        which = f"All {len(good)}" if len(good) == len(same) > 1 else f"Of these, {len(good)}"
        yield (
            f"We repeated {len(same)} of the runs that timed out, with the same losses and a limit of "
            f"{case.timeout:g} s ({named([(run.server, run.client) for run in same], ())}): those with "
            f"{seeds_in_words(sorted({run.repetition for run in same}))}{_of_variants(same)}. {which} succeeded, after "
            f"{times[0]:.0f} to {times[-1]:.0f} s."
        )
        yield ""


def _of_variants(runs: Sequence[RunResult]) -> str:
    """That the clients are those of another section, if all servers ran with them."""
    found = {(run.server, run.client) for run in runs}
    if found != {(run.server, client) for run in runs for client in CLIENTS_OF_VARIANTS}:
        return ""
    return " and the clients of [Algorithm or implementation](#algorithm-or-implementation)"


def _repeated(results: ResultSet) -> str:
    """How many attempts were repeated, and with which outcome; the last attempt counts."""
    last = {each.key: each.verdict.outcome for each in results.results}
    again = [each for each in results.earlier if each.key in last]
    if not again:
        return ""
    same = sum(last[each.key] is each.verdict.outcome for each in again)
    return (
        f"We repeated {counted(len(again), 'unsuccessful attempt')} with the same seed; {same} of them had the same "
        "outcome again. The last attempt counts."
    )
