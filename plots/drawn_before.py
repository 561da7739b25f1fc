"""Remembers which picture shows what, so that a picture that would be the same is not drawn again."""

import dataclasses
import hashlib
import json
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

from quicsat.model.stored_files import read_file, resolved
from quicsat.model.units import MIB
from quicsat.model.whole_file import new_file
from quicsat.plots.base import Drawing

FILE_NAME = ".drawn.json"
LARGEST = 8 * MIB
"""Bytes of the record that are read."""
LIBRARIES = ("matplotlib", "seaborn")


class DrawnBefore:
    """The pictures in a directory, each with a digest of what it shows, its size, and the time of its last change."""

    def __init__(self, directory: Path) -> None:
        """A missing or damaged record remembers nothing."""
        self._file = resolved(directory.parent) / directory.name / FILE_NAME
        try:
            found = json.loads(read_file(self._file, LARGEST))
        except (OSError, ValueError, RecursionError):
            found = None
        self._known: dict[str, Any] = found if isinstance(found, dict) else {}

    def shows(self, path: Path, digest: str) -> bool:
        """Whether a picture is there, is as it was drawn, and shows what ``digest`` stands for."""
        try:
            return bool(self._known.get(path.name) == [digest, *_state(path)])
        except OSError:
            return False

    def drew(self, path: Path) -> bool:
        """Whether a picture is as it was drawn, whatever it shows."""
        known = self._known.get(path.name)
        try:
            return isinstance(known, list) and known[1:] == [*_state(path)]
        except OSError:
            return False

    def note(self, path: Path, digest: str) -> None:
        """Remember a picture that was just drawn. Raises OSError."""
        self._known[path.name] = [digest, *_state(path)]

    def save(self) -> None:
        """Keep what is remembered. Raises OSError."""
        with new_file(self._file) as file:
            file.write(json.dumps(self._known, indent=0).encode())


def digest_of(drawing: Drawing) -> str:
    """Of all numbers and words of a drawing, and of what draws it: the modules of this package and its libraries."""
    content = "\n".join([*_program(), content_of(drawing)])
    return hashlib.sha256(content.encode("utf-8", "surrogatepass")).hexdigest()


def content_of(drawing: Drawing) -> str:
    """All numbers and words of a drawing, as a text that is the same in each process."""
    return json.dumps(drawing, default=_plain)


def _state(path: Path) -> tuple[int, int]:
    status = path.lstat()
    return status.st_size, status.st_mtime_ns


def _plain(value: Any) -> Any:
    if dataclasses.is_dataclass(value):
        return [type(value).__name__, vars(value)]
    if hasattr(value, "tolist"):  # an array or a number of NumPy; its bytes are a tenth of the work
        raw = value.dtype.hasobject
        return value.tolist() if raw else [str(value.dtype), value.shape, hashlib.sha256(value.tobytes()).hexdigest()]
    return repr(value)


@cache
def _program() -> list[str]:
    sources = sorted(Path(__file__).parent.glob("*.py"))
    code = hashlib.sha256(b"".join(path.read_bytes() for path in sources)).hexdigest()
    return [code, *(f"{name} {version(name)}" for name in LIBRARIES)]
