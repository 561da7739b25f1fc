"""The sample website: what ``make docs`` makes of the stored campaigns."""

import gzip
from pathlib import Path

import pytest

from quicsat.model.units import MBPS
from quicsat.results.document import document
from scripts import sample_site
from tests.results_builder import result_set, runs


def test_the_website_has_the_stored_campaign(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "matrix-1.json.gz").write_bytes(gzip.compress(document(result_set(runs(5 * MBPS)))))
    (tmp_path / "data" / "queues-1.json.gz").write_bytes(b"not part of it")
    assert sample_site.main([str(tmp_path / "site"), "--data", str(tmp_path / "data")]) == 0
    assert "5.00" in "".join(path.read_text("utf-8") for path in (tmp_path / "site").rglob("*.html"))


def test_without_campaigns_there_is_no_website(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert sample_site.main([str(tmp_path / "site"), "--data", str(tmp_path)]) == 2
    assert "no campaign of the part matrix" in capsys.readouterr().err
    assert not (tmp_path / "site").exists()
