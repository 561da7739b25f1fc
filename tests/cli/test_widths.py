"""On a terminal, no command prints a line that is wider, and a table is complete in whichever form it fits."""

from __future__ import annotations

from pathlib import Path

import pytest

from quicsat.cli import console
from quicsat.cli.commands import SUMMARIES
from quicsat.cli.tables import TABLES
from quicsat.results.store import write_result_json
from tests.cli.conftest import GOOD, Checkout, CommandLine
from tests.results_builder import SAT, SATLOSS, result_set, run_result

SERVERS = ("picoquic:window-256k", "ngtcp2:window-768k", "quic-go", "haproxy:newreno", "nginx-tcp:iw20")
CLIENTS = ("picoquic:window-1m", "aioquic", "chromium")
REASON = "The client closed the connection with a transport error, as it did in the first repetition. " * 2
TWO_CASES = ("clusters", "groups")


def reason(rate: float | None) -> str:
    return "" if rate else REASON


@pytest.fixture
def campaigns(tmp_path: Path) -> tuple[Path, Path]:
    """Two campaigns of many pairs with long names, in which some runs failed."""
    made = []
    for place, rates in ((tmp_path / "before", (10e6, 11e6, None)), (tmp_path / "after", (6e6, 6.1e6, 6.2e6))):
        place.mkdir()
        results = [
            run_result(rate, server=server, client=client, test_case=case, repetition=number, reason=reason(rate))
            for server in SERVERS
            for client in CLIENTS
            for case in ("sat", "satloss")
            for number, rate in enumerate(rates, start=1)
        ]
        write_result_json(
            place, result_set(results, servers=SERVERS, clients=CLIENTS, test_cases=(SAT, SATLOSS), repetitions=3)
        )
        made.append(place)
    return made[0], made[1]


def too_wide(text: str, columns: int) -> list[str]:
    """The lines that are wider, without commands to copy and words that have no space to be wrapped at."""
    return [
        line
        for line in text.splitlines()
        if len(line) > columns
        and (not line.lstrip().startswith("./run.py ") or " # " in line)
        and len(line.split()) > 1
    ]


@pytest.mark.parametrize("columns", [80, 120, 200])
def test_stored_results(
    quicsat: CommandLine, campaigns: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch, columns: int
) -> None:
    before, after = campaigns
    cases = [("tables", before, "--table", name, *(("-t", "sat", "satloss") if name in TWO_CASES else ()))
             for name in TABLES]  # fmt: skip
    commands = [*cases, ("show", before, "--negotiated"), ("compare", before, after, "--all"), ("list",),
                ("tables", before, after), ("prune", before.parent, "--traces", "1"), ("list", "sat"),
                *(("help", name) for name in SUMMARIES), ("--help",)]  # fmt: skip
    plain = {words: quicsat(*words)[1] for words in commands}
    monkeypatch.setattr(console, "_columns", lambda _: columns)
    for words in commands:
        status, out, err = quicsat(*words)
        assert (too_wide(out, columns), too_wide(err, columns)) == ([], []), words
        numbers = [word for word in plain[words].replace("│", " ").split() if word[:1].isdigit()]
        assert [word for word in numbers if words[0] in ("tables", "compare") and word not in out] == [], words
        assert status in (0, 1, 5), words


@pytest.mark.parametrize("columns", [80, 120, 200])
def test_plans_images_and_campaigns(checkout: Checkout, monkeypatch: pytest.MonkeyPatch, columns: int) -> None:
    monkeypatch.setattr(console, "_columns", lambda _: columns)
    pairs = ("-s", "good", "bad", "-c", "good", "bad", "-t", "tiny")
    for words in (("plan", *pairs, "--all"), pairs, ("images", "list"), ("images", "sources"), ("images", "check"),
                  ("doctor", "--all"), ("plan", *GOOD, "--repetitions", "10000", "--timeout", "13h"),
                  ("plan", "--nope")):  # fmt: skip
        _, out, err = checkout(*words)
        assert out or err
        assert (too_wide(out, columns), too_wide(err, columns)) == ([], []), words
