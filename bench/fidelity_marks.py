"""Writes into implementations.json which pairs hold in virtual time only, from the verdicts that bench.fidelity stored.

    python -m bench.fidelity_marks docs/measurements/data/fidelity-DATE.json

A pair is named if its verdict is *different*, or if it has enough runs with each clock, and these do not show that the
clocks are equivalent. If the server as a whole is different, and none of its pairs is equivalent, all clients are
marked, also those that were not measured.
"""

# ruff: noqa: T201 - a script

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bench.script import ROOT
from quicsat.config.cost_entry import with_key
from quicsat.config.implementations import VIRTUAL_ONLY_KEY
from quicsat.config.loader import load_implementations
from quicsat.model.implementation import EVERY_CLIENT
from quicsat.statistics.equivalence import FEWEST_EQUIVALENT, Agreement

Links = dict[str, list[str]]
"""Clients by test case."""


def marks(found: Mapping[str, Any]) -> dict[str, Links]:
    """The clients by server and link."""
    marked = dict[str, Links]()
    equivalent = {(row["server"], row["link"]) for row in found["pairs"] if row["verdict"] == Agreement.EQUIVALENT}
    for row in found["servers"]:
        if row["verdict"] == Agreement.DIFFERENT and (row["server"], row["link"]) not in equivalent:
            marked.setdefault(row["server"], {})[row["link"]] = [EVERY_CLIENT]
    for row in found["pairs"]:
        clients = marked.setdefault(row["server"], {}).setdefault(row["link"], [])
        if _fails(row) and EVERY_CLIENT not in clients:
            clients.append(row["client"])
    kept = {server: {link: names for link, names in links.items() if names} for server, links in marked.items()}
    return {server: links for server, links in kept.items() if links}


def _fails(row: Mapping[str, Any]) -> bool:
    verdict, runs = Agreement(row["verdict"]), min(row["real"], row["virtual"])
    return verdict is Agreement.DIFFERENT or (verdict is Agreement.UNDECIDED and runs >= FEWEST_EQUIVALENT)


def written(text: str, marked: Mapping[str, Links], date: str) -> str:
    """The text of implementations.json with these marks instead of all earlier ones; raises InputError."""
    for name in (name for name, entry in json.loads(text).items() if VIRTUAL_ONLY_KEY in entry):
        text = with_key(text, name, VIRTUAL_ONLY_KEY, None)
    for name, links in marked.items():
        text = with_key(text, name, VIRTUAL_ONLY_KEY, {"date": date, "links": links})
    return text


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit status: 0 the marks were written."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("verdicts", type=Path, help="written by bench.fidelity --json")
    parser.add_argument("--to", type=Path, default=ROOT / "implementations.json", metavar="FILE")
    options = parser.parse_args(arguments)
    found = json.loads(options.verdicts.read_text(encoding="utf-8"))
    marked = marks(found)
    options.to.write_text(written(options.to.read_text(encoding="utf-8"), marked, found["date"]), encoding="utf-8")
    load_implementations(options.to)
    print(f"{options.to}: {len(marked)} servers have pairs that hold in virtual time only")
    return 0


if __name__ == "__main__":
    sys.exit(main())
