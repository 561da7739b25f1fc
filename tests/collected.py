"""Collected tests by their place."""

import os
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest


def below(folder: Path, items: Iterable[pytest.Item]) -> Iterator[pytest.Item]:
    """Those of a folder. Paths are compared as text, since pathlib needs a second of CPU time for all tests."""
    beginning = f"{folder}{os.sep}"
    return (item for item in items if str(item.path).startswith(beginning))
