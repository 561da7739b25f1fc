"""Pack the data set as an archive: data, checksums, data sheet and licence.

  .venv/bin/python -m paper.archive build/docs/paper/data-set.tar.gz

`sha256sum -c SHA256SUMS` in the directory `data` of the archive checks the data. The same data set gives the same
archive, to the last bit.
"""

# ruff: noqa: T201 - a script

import argparse
import gzip
import io
import sys
import tarfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from paper.__main__ import DATA, ROOT
from paper.data_set import CHECKSUMS, files

TITLE = "## Data"
"""Of the section of the page that describes the data set."""
NAME = "arxiv-2202.08228-revisited"
"""Directory in the archive."""
LICENCE = """The data and the figures of this data set are licensed under the Creative Commons Attribution 4.0
International License (CC BY 4.0): https://creativecommons.org/licenses/by/4.0/
"""


def members() -> Iterator[tuple[str, bytes]]:
    """Name in the archive and content of each file."""
    page = (ROOT / "docs" / "paper" / "index.md").read_text("utf-8")
    yield "DATA_SHEET.md", page[page.index(f"{TITLE}\n") :].encode()
    yield "LICENCE.txt", LICENCE.encode()
    for path in (*files(DATA), DATA / CHECKSUMS):
        yield f"{DATA.name}/{path.relative_to(DATA)}", path.read_bytes()


def pack(target: Path) -> None:
    """Write the archive, without times and owners, so that equal data give an equal archive."""
    target.parent.mkdir(parents=True, exist_ok=True)
    with (
        target.open("wb") as raw,
        gzip.GzipFile(fileobj=raw, mode="wb", mtime=0, filename="") as packed,
        tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as archive,
    ):
        for name, content in members():
            entry = tarfile.TarInfo(f"{NAME}/{name}")
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))


def main(arguments: Sequence[str] | None = None) -> int:
    """Pack the stored data set; the exit status."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("target", type=Path, help="archive to write; example: build/docs/paper/data-set.tar.gz")
    target: Path = parser.parse_args(arguments).target
    pack(target)
    print(f"{target}: {target.stat().st_size / 1e6:.1f} MB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
