"""Write docs/paper/ from the campaigns of `make paper`: data set, tables, figures and text.

  make paper-report                              # from results/paper
  make paper-report RESULTS=DIR                  # from another directory of campaigns
  .venv/bin/python scripts/paper_report.py       # from the data set in docs/paper/data alone

The data set holds the result.json of each campaign, compressed, and the checksums of these files. All numbers of the
report come from the data set, except those of the paper, which are constants of scripts/paper/published.py.
"""

# ruff: noqa: E402, T201 - a script

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from scripts.paper.data_set import DATA, Part, collect, read, write_checksums
from scripts.paper.figures import draw_figures
from scripts.paper.lines import FIGURES
from scripts.paper.packets import collect_series
from scripts.paper.page import page

PAGE = "index.md"


def collect_all(results: Path, data: Path) -> bool:
    """Write the data set; whether a campaign has a result."""
    if not collect(results, data):
        return False
    collect_series(results, data)
    write_checksums(data)
    return True


def main(arguments: Sequence[str] | None = None) -> int:
    """Collect the data set where a directory of campaigns is given, then write figures and page; the exit status."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("results", type=Path, nargs="?", help="directory of campaigns (default: only the data set)")
    parser.add_argument("--output", type=Path, default=ROOT / "docs" / "paper", help="default: docs/paper")
    options = parser.parse_args(arguments)
    data = options.output / DATA
    if options.results is not None and not collect_all(options.results, data):
        print(f"{options.results}: no campaign has a result yet; `make paper` measures them.", file=sys.stderr)
        return 2
    parts = read(data)
    if Part.MATRIX not in parts:
        print(f"{data}: has no campaign of the part {Part.MATRIX}; `make paper` measures it.", file=sys.stderr)
        return 2
    figures = draw_figures(parts, data, options.output / FIGURES)
    (options.output / PAGE).write_text(page(parts, figures, data), encoding="utf-8")
    print(f"{options.output / PAGE}: {len(parts)} parts, {sum(map(len, figures.values()))} figures")
    return 0


if __name__ == "__main__":
    sys.exit(main())
