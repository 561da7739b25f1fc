"""The documentation site: it builds without a warning, and its pages load nothing from other hosts."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
LOADED = re.compile(
    r"<(?:script|img|iframe|source|video|audio)\b[^>]*\bsrc=[\"']?([^\"' >]+)|<link\b[^>]*\bhref=[\"']?([^\"' >]+)"
)
TIMEOUT = 240
"""Seconds that the build may take on a busy machine."""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, built strictly, with proxies that refuse every connection."""
    place = tmp_path_factory.mktemp("site")
    closed = dict.fromkeys(("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"), "http://127.0.0.1:9")
    built = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(place)],
        cwd=ROOT, env={**os.environ, **closed, "NO_MKDOCS_2_WARNING": "1"}, capture_output=True, text=True,
        timeout=TIMEOUT, check=False,
    )  # fmt: skip
    assert built.returncode == 0, built.stderr
    return place


def test_every_page_is_built(site: Path) -> None:
    pages = [page.relative_to(ROOT / "docs").with_suffix(".html") for page in ROOT.glob("docs/**/*.md")]
    assert {page for page in pages if not (site / page).exists()} == set()


def test_pages_load_nothing_from_other_hosts(site: Path) -> None:
    loaded = {
        target
        for page in site.rglob("*.html")
        for found in LOADED.findall(page.read_text(encoding="utf-8"))
        for target in found
        if re.match(r"(https?:)?//", target)
    }
    assert loaded == set()


def test_style_sheets_load_nothing_from_other_hosts(site: Path) -> None:
    sheets = "".join(sheet.read_text(encoding="utf-8") for sheet in site.rglob("*.css"))
    assert re.findall(r"(?:url\(|@import)\s*[\"']?(?:https?:)?//[^)\"']+", sheets) == []
