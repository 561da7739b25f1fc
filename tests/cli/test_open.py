"""``./run.py open`` serves a site that exists."""

import os
import urllib.request
import webbrowser
from pathlib import Path

import pytest

from quicsat.site import serve
from tests.cli.conftest import CommandLine


@pytest.fixture
def sites(tmp_path: Path, quicsat: CommandLine) -> Path:
    """A directory with two sites, of which ``new`` was built last, and one that is none."""
    for name, age in (("old", 2000), ("new", 1000), ("none", 0)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "index.html").write_text(name)
        if age:
            (tmp_path / name / "site.json").write_text('{"made by": "quicsat 1"}')
        os.utime(tmp_path / name, (1e9 - age, 1e9 - age))
    quicsat.root = tmp_path
    return tmp_path


@pytest.mark.parametrize("desktop", [True, False])
@pytest.mark.parametrize(("words", "shown"), [([], "new"), (["old"], "old")])
def test_the_site_is_served_and_opened(
    sites: Path, words: list[str], shown: str, desktop: bool, monkeypatch: pytest.MonkeyPatch,
    quicsat: CommandLine, capsys: pytest.CaptureFixture[str],
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
    assert quicsat("open", "--port", "0", *(sites / word for word in words))[0] == 0
    assert (read, len(opened)) == ([shown], int(desktop))


@pytest.mark.parametrize("name", ["none", "void"])
def test_what_is_no_site(sites: Path, name: str, quicsat: CommandLine) -> None:
    assert f"{name}: is not a site" in quicsat.refusal("open", sites / name)
    quicsat.root = sites / "none"
    assert "contains no site. To build one: ./run.py site results" in quicsat.refusal("open")
