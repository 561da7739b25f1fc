"""``./run.py export`` writes the formats of QIR and QIR-SE."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Checkout

GOOD = ("-s", "good", "-c", "good", "-t", "tiny")


@pytest.mark.parametrize("form", ["qir", "qir-se"])
def test_logs_are_named_as_the_directory_if_the_file_is_in_it(checkout: Checkout, form: str) -> None:
    checkout(*GOOD)
    file = checkout.results / "result.json"
    assert checkout("export", str(checkout.results), str(file), "--format", form)[0] == 0
    assert json.loads(file.read_text())["log_dir"] == checkout.results.resolve().name
    assert "good" in checkout("show", str(checkout.results))[1]


@pytest.mark.parametrize("form", ["qir", "qir-se"])
def test_export(checkout: Checkout, tmp_path: Path, form: str) -> None:
    checkout(*GOOD)
    assert checkout("export", str(checkout.results), str(tmp_path / "x.json"), "--format", form) == (0, "", "")
    assert json.loads((tmp_path / "x.json").read_text())["clients"] == ["good"]
