"""Build the website of the matrix in paper/data, as a sample of what `run.py site` makes (`make docs`).

python -m scripts.sample_site build/docs/sample      # copy this directory to a web server to publish it
"""
# ruff: noqa: T201 - a script

import argparse
import gzip
import shutil
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from quicsat.cli import main as cli
from quicsat.results.store import DOCUMENT

ROOT = Path(__file__).resolve().parents[1]
DATA = ROOT / "paper" / "data"
PART = "matrix"


def unpack(data: Path, target: Path) -> list[Path]:
    """Directories of campaigns below ``target``, one for each file of the matrix in ``data``."""
    found = []
    for path in sorted(data.glob(f"{PART}-*.json.gz")):
        directory = target / path.name.removesuffix(".json.gz")
        directory.mkdir(parents=True)
        with gzip.open(path) as packed, (directory / DOCUMENT).open("wb") as file:
            shutil.copyfileobj(packed, file)
        found.append(directory)
    return found


def main(words: Sequence[str]) -> int:
    """Unpack the campaigns and build their website; the exit status of `run.py site`."""
    parser = argparse.ArgumentParser(
        description=__doc__.splitlines()[0], formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("site", type=Path, help="directory of the website, which is replaced")
    parser.add_argument("--data", type=Path, default=DATA, help="default: paper/data")
    options = parser.parse_args(words)
    with tempfile.TemporaryDirectory(prefix="quicsat-sample-") as folder:
        directories = unpack(options.data, Path(folder))
        if not directories:
            print(f"{options.data}: no campaign of the part {PART}", file=sys.stderr)
            return 2
        return cli.main(ROOT, ["site", *map(str, directories), "-o", str(options.site)])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
