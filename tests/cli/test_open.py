"""``./run.py open`` serves a site that exists."""

from __future__ import annotations

import os
import urllib.request
import webbrowser
from pathlib import Path

import pytest

from quicsat.cli.main import main
from quicsat.site import serve


@pytest.fixture
def sites(tmp_path: Path) -> Path:
    """A directory with two sites, of which ``new`` was built last, and one that is none."""
    for name, age in (("old", 2000), ("new", 1000), ("none", 0)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "index.html").write_text(name)
        if age:
            (tmp_path / name / "site.json").write_text('{"made by": "quicsat 1"}')
        os.utime(tmp_path / name, (1e9 - age, 1e9 - age))
    return tmp_path


@pytest.mark.parametrize("desktop", [True, False])
@pytest.mark.parametrize(("words", "shown"), [([], "new"), (["old"], "old")])
def test_the_site_is_served_and_opened(
    sites: Path, words: list[str], shown: str, desktop: bool, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    opened: list[str] = []
    read: list[str] = []
    for name in ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER"):
        monkeypatch.delenv(name, raising=False)
    if desktop:
        monkeypatch.setenv("DISPLAY", ":0")
    monkeypatch.setattr(webbrowser, "open", opened.append)

    def look() -> None:
        with urllib.request.urlopen(capsys.readouterr().out.strip()) as answer:
            read.append(answer.read().decode())

    monkeypatch.setattr(serve, "wait", look)
    assert main(sites, ["open", "--port", "0", *(str(sites / word) for word in words)]) == 0
    assert (read, len(opened)) == ([shown], int(desktop))


@pytest.mark.parametrize(("words", "message"), [(["none"], "none: is not a site"), (["void"], "void: is not a site")])
def test_what_is_no_site(sites: Path, words: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(sites, ["open", *(str(sites / word) for word in words)]) == 2
    assert message in capsys.readouterr().err
    assert main(sites / "none", ["open"]) == 2
    assert "contains no site. To build one: ./run.py site results" in capsys.readouterr().err
