"""Packs the folder that PATHS names into $ARTIFACTS/$NAME.zip, without the files that its lines with "!" exclude."""

from __future__ import annotations

import os
import re
import zipfile
from pathlib import Path

FOLDERS = "**/"


def pattern(words: str) -> re.Pattern[str]:
    """What ``*`` and ``**/`` of actions/glob match."""
    parts = (re.escape(part).replace(r"\*", "[^/]*") for part in words.split(FOLDERS))
    return re.compile("(?:[^/]+/)*".join(parts))


def main() -> None:
    lines = os.environ["PATHS"].split()
    [folder] = (Path(line) for line in lines if not line.startswith("!"))
    excluded = [pattern(line[1:]) for line in lines if line.startswith("!")]
    with zipfile.ZipFile(Path(os.environ["ARTIFACTS"], f"{os.environ['NAME']}.zip"), "w") as archive:
        for file in sorted(folder.rglob("*")):
            hidden = any(part.startswith(".") for part in file.relative_to(folder).parts)
            if file.is_file() and not hidden and not any(each.fullmatch(str(file)) for each in excluded):
                archive.write(file, file.relative_to(folder))


main()
