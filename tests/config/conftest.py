"""Every test about files begins in a folder of its own."""

from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def in_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Messages name files relative to the working directory."""
    monkeypatch.chdir(tmp_path)
