"""Write docs/paper: `make paper-report`, or `python -m paper [RESULTS]`.

Without RESULTS, everything comes from the data set in paper/data. With a directory of campaigns of `make paper`, the
data set is collected from it first.
"""

# ruff: noqa: T201 - a script

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from paper.data_set import collect, read
from paper.figures import draw_all
from paper.page import write

ROOT = Path(__file__).resolve().parent.parent
DATA = ROOT / "paper" / "data"


def main(arguments: Sequence[str] | None = None) -> int:
    """Collect the data set where a directory of campaigns is given, then write figures, tables and pages."""
    parser = argparse.ArgumentParser(prog="python -m paper", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("results", type=Path, nargs="?", help="directory of campaigns (default: only the data set)")
    parser.add_argument("--output", type=Path, default=ROOT / "docs" / "paper", help="default: docs/paper")
    options = parser.parse_args(arguments)
    if options.results is not None and not collect(options.results, DATA):
        print(f"{options.results}: no campaign has a result yet; `make paper` measures them.", file=sys.stderr)
        return 2
    data = read(DATA)
    options.output.mkdir(parents=True, exist_ok=True)
    numbers = write(data, draw_all(data, options.output / "figures"), options.output)
    print(f"{options.output}: {len(numbers.values)} numbers, {len(numbers.tables)} tables")
    return 0


if __name__ == "__main__":
    sys.exit(main())
