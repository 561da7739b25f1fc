"""The command setup: what quicsat needs outside of Python, by the script of the checkout."""

import sys
from pathlib import Path

import pytest

from quicsat.cli import setup
from quicsat.model import product_files
from quicsat.model.errors import MachineError


def script(folder: Path, text: str) -> None:
    """A checkout with such a set-up."""
    (folder / "scripts").mkdir()
    (folder / "scripts" / "setup").write_text(text)


def test_the_script_gets_this_interpreter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script(tmp_path, f'echo "$@" >{tmp_path}/words')
    monkeypatch.setattr(product_files, "FILES", tmp_path)
    setup.prepare()
    assert (tmp_path / "words").read_text() == f"--for {sys.executable}\n"


def test_a_machine_that_is_not_ready_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script(tmp_path, "exit 3")
    monkeypatch.setattr(product_files, "FILES", tmp_path)
    with pytest.raises(MachineError, match="not ready"):
        setup.prepare()
