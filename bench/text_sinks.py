"""Puts hostile words into everything that quicsat writes, opens it with what reads it, and counts what acts.

Run it with `make bench-text-sinks`. Web servers and LaTeX that are not here are left out, and named:
apt-get install --no-install-recommends apache2 nginx-light caddy texlive-latex-recommended texlive-pictures
"""
# ruff: noqa: T201 - a script

import csv
import io
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import quote
from urllib.request import urlopen
from xml.etree import ElementTree as Xml

from markdown_it import MarkdownIt
from playwright.sync_api import Browser, Error, sync_playwright
from prettytable import PrettyTable

from bench.script import ROOT
from quicsat.model.expectations import CellPattern, Expectations, KnownFailure
from quicsat.model.outcomes import Outcome
from quicsat.model.results import ResultSet
from quicsat.model.text import printable_lines
from quicsat.report import change_comment, github, junit
from quicsat.report.table import Column, Table, render
from quicsat.site import serve
from quicsat.statistics.judgement import Judgement, judge
from tests.browser import chromium
from tests.payloads import ALL, PAYLOADS
from tests.plots.test_hostile_texts import drawn
from tests.results_builder import result_set, run_result
from tests.site import hostile

APACHE_MODULES = "mpm_event authz_core mime negotiation dir autoindex"
"""Those of Debian's installation that decide what a browser gets."""
DOCUMENT = r"""\documentclass{article}
\usepackage{amssymb,booktabs,pgf}
\def\mathdefault#1{#1}
\begin{document}
%s
\end{document}
"""
ELEMENTS = re.compile(r"<(a|img|script|iframe|object|embed|svg|math|style|form|input|link|meta|base)[\s>/]")
"""Elements of HTML that no text from outside makes."""
HEADERS = ("Content-Security-Policy", "X-Content-Type-Options", "Access-Control-Allow-Origin", "Referrer-Policy")
PATIENCE = 30.0
"""Seconds until a server answers."""


@dataclass(frozen=True)
class Found:
    """What a sink with its reader did."""

    sink: str
    reader: str
    texts: int | None
    """Texts, pages or files that were read; None if the reader is not here."""
    acted: int = 0
    """Those of them that did more than be shown."""
    control: bool = False
    """It shows that the bench sees what acts: the same words as quicsat does not write them."""


# ---- what is read by programs -------------------------------------------------------------------


def of_tables() -> Iterator[Found]:
    """Tables, as a spreadsheet and a terminal read them."""
    table = Table("hostile", "x", (Column("word"),), tuple((word,) for word in ALL))
    fields = [row[0] for row in csv.reader(io.StringIO(render(table, "csv")))][1:]
    yield Found("CSV", "csv", len(fields), sum(field.startswith(("=", "+", "-", "@", "\uff1d")) for field in fields))
    lines = [render(replace(table, title=word, notes=(word,), rows=((word,),)), "text") for word in ALL]
    yield Found("terminal", "printable characters", len(lines), sum(line != printable_lines(line) for line in lines))


def judged(word: str) -> tuple[ResultSet, Judgement]:
    """A campaign of which every reason is a word."""
    runs = [run_result(None, outcome=Outcome.FAILED, reason=word), run_result(None, server="quiche", reason=word)]
    results = result_set(runs, servers=("picoquic", "quiche"), repetitions=1)
    expected = Expectations((KnownFailure(CellPattern(("quiche",)), word),))
    return results, judge(results, expected, None, (word,))


def of_reports() -> Iterator[Found]:
    """JUnit and annotations; what the runner of GitHub takes for a command is a line by these rules."""
    roots = [Xml.fromstring(junit.junit(*judged(word))) for word in ALL]
    known = {"testsuites", "testsuite", "testcase", "properties", "property"}
    known |= {"failure", "error", "skipped", "system-out"}
    yield Found("JUnit", "expat", len(roots), sum(any(each.tag not in known for each in root.iter()) for root in roots))
    acted = 0
    for word in ALL:
        for text in github.of_judgement(judged(word)[1]):
            lines = re.split(r"[\r\n]", text)
            acted += len(lines) != 1 or not re.fullmatch(r"::(error|warning|notice) title=[^:,]*::.*", lines[0])
    yield Found("annotations", "rules of GitHub's runner", len(ALL), acted)


# ---- LaTeX --------------------------------------------------------------------------------------


def of_latex(place: Path) -> Iterator[Found]:
    """Tables and figures; LaTeX may start programs, and notes which files it reads and writes."""
    rows = tuple((word,) for word in ALL)
    (place / "table.tex").write_text(
        render(Table("hostile", ALL[0], (Column("word"),), rows), "latex"), encoding="utf-8"
    )
    drawn(place, ALL, ["pgf"])
    for sink, file in (("LaTeX tables", "table.tex"), ("PGF figures", "hostile.pgf")):
        yield Found(sink, "pdflatex", *_compiled(place, file))


def _compiled(place: Path, file: str) -> tuple[int | None, int]:
    if not shutil.which("pdflatex"):
        return None, 0
    (place / "document.tex").write_text(DOCUMENT % f"\\input{{{file}}}", encoding="utf-8")
    words = ["pdflatex", "-shell-escape", "-recorder", "-interaction=nonstopmode", "document.tex"]
    subprocess.run(words, cwd=place, capture_output=True, check=False, timeout=600)
    record = (place / "document.fls").read_text(errors="replace")
    read = re.findall(r"^(?:INPUT|OUTPUT) (.*)$", record, re.M)
    strange = {
        name for name in read if not re.search(r"/\.?tex(mf|live)|document\.[a-z]+$|^\S*" + re.escape(file), name)
    }
    return len(ALL), len(strange) + (place / "pwned").exists() + (not (place / "document.pdf").is_file())


# ---- browsers -----------------------------------------------------------------------------------


class Opened:
    """Pages that were opened one after the other, and how many of them ran something."""

    def __init__(self, browser: Browser) -> None:
        self._page = browser.new_context().new_page()
        self.count = self.acted = 0
        self._dialogs = 0
        self._page.on("dialog", self._dismiss)

    def open(self, address: str) -> None:
        """Open a page; a file that the browser only saves runs nothing."""
        before = self._dialogs
        with suppress(Error):
            self._page.goto(address, wait_until="load")
        self.count += 1
        with suppress(Error):
            ran = self._page.evaluate("window.pwned !== undefined")
            self.acted += bool(ran) or self._dialogs > before

    def _dismiss(self, dialog: object) -> None:
        self._dialogs += 1
        dialog.dismiss()  # type: ignore[attr-defined]


def pages_of_markdown() -> Iterator[str]:
    """Comments, step summaries and tables as CommonMark with tables and HTML, which GitHub filters in addition."""
    parser = MarkdownIt("commonmark", {"html": True}).enable("table")
    for word in ALL:
        table = Table("hostile", word, (Column("word"),), ((word,),), (word,))
        yield parser.render(change_comment.comment(*judged(word)))
        yield parser.render(render(table, "markdown"))


def of_markdown(browser: Browser, place: Path) -> Iterator[Found]:
    """The same in a browser; links and pictures count, too."""
    opened = Opened(browser)
    strange = 0
    for html in pages_of_markdown():
        strange += bool(ELEMENTS.search(html))
        (place / "page.html").write_text(f"<!doctype html><meta charset=utf-8>{html}", encoding="utf-8")
        opened.open((place / "page.html").as_uri())
    yield Found("Markdown", "markdown-it, Chromium", opened.count, opened.acted + strange)


def of_figures(browser: Browser, place: Path) -> Iterator[Found]:
    """Figures that quicsat draws, opened as pages of their own; PDF by its actions."""
    files = drawn(place, ALL, ["svg", "pdf"])
    opened = Opened(browser)
    opened.open(files[0].as_uri())
    yield Found("SVG figures", "Chromium", len(ALL), opened.acted)
    actions = re.findall(rb"/(JavaScript|JS|OpenAction|AA|Launch|URI|SubmitForm)\b", files[1].read_bytes())
    yield Found("PDF figures", "actions in the file", len(ALL), len(actions))


def of_site(browser: Browser, site: Path) -> Iterator[Found]:
    """All pages by the server of quicsat, and all files of runs and figures by all servers."""
    pages = sorted(str(path.relative_to(site)) for path in site.rglob("*.html"))
    data = sorted(str(path.relative_to(site)) for path in site.glob("runs/*/data/*.*"))
    files = hostile.files(site)
    with serve.server(site, kept=True) as address:
        yield _visited(browser, "pages", "quicsat --serve", address, pages + data)
        yield _visited(browser, "files", "quicsat --serve", address, files)
        expected = _headers(address, files)
    for name, (program, arguments) in SERVERS.items():
        if not shutil.which(program):
            yield Found("files", name, None)
            continue
        with _running(arguments, site) as address:
            yield _visited(browser, "files", name, address, files)
            if name == "Apache, stock":
                found = _visited(browser, "the same words as .qlog files", name, address, _control(site))
                yield replace(found, control=True)
            if not name.endswith("stock"):
                wrong = sum(one != other for one, other in zip(expected, _headers(address, files), strict=True))
                yield Found("headers as of --serve", name, len(expected), wrong)


def _control(site: Path) -> list[str]:
    """Files with the words for browsers under a name whose type Apache does not know."""
    names = [f"control-{number}.qlog" for number in range(len(PAYLOADS))]
    for name, word in zip(names, PAYLOADS, strict=True):
        (site / name).write_text(word, encoding="utf-8")
    return names


def _visited(browser: Browser, sink: str, reader: str, address: str, names: Sequence[str]) -> Found:
    opened = Opened(browser)
    for name in names:
        opened.open(address + quote(name))
    return Found(sink, reader, opened.count, opened.acted)


def _headers(address: str, files: Sequence[str]) -> list[tuple[str | None, ...]]:
    """Of the start page, of the style sheet's folder and of a file of each suffix."""
    one = {name.partition(".")[2]: name for name in files}
    told = []
    for name in ("", "index.html", *(one[suffix] for suffix in sorted(one))):
        with urlopen(address + quote(name), timeout=PATIENCE) as answer:
            told.append((name, answer.headers.get_content_type(), *map(answer.headers.get, HEADERS)))
    return told


# ---- web servers --------------------------------------------------------------------------------


def _apache(place: Path, site: Path, port: int, *, stock: bool) -> list[str]:
    modules = APACHE_MODULES.split() + ([] if stock else ["headers"])
    lines = [f"ServerRoot {place}", f"PidFile {place}/pid", f"Listen 127.0.0.1:{port}", "ServerName 127.0.0.1"]
    lines += [f"ErrorLog {place}/log", "User nobody", "Group nogroup"]
    lines += [f"LoadModule {name}_module /usr/lib/apache2/modules/mod_{name}.so" for name in modules]
    lines += [
        f"Include /etc/apache2/mods-available/{name}.conf" for name in ("mime", "negotiation", "dir", "autoindex")
    ]
    if stock:
        lines += [f"DocumentRoot {site}", f"<Directory {site}>", "Require all granted", "</Directory>"]
    else:
        lines.append((ROOT / "web/servers/apache.conf").read_text().replace("/var/www/quic", str(site)))
    (place / "conf").write_text("\n".join(lines))
    return ["apache2", "-f", str(place / "conf"), "-D", "FOREGROUND"]


def _nginx(place: Path, site: Path, port: int, *, stock: bool) -> list[str]:
    http = "include /etc/nginx/mime.types; default_type application/octet-stream; access_log off;\n"
    if stock:
        http += f"server {{ listen 127.0.0.1:{port}; root {site}; }}"
    else:
        text = (ROOT / "web/servers/nginx.conf").read_text().replace("/var/www/quic", str(site))
        http += text.replace("listen 80;", f"listen 127.0.0.1:{port};")
    conf = f"daemon off; pid {place}/pid; error_log {place}/log; events {{}}\nhttp {{\n{http}\n}}\n"
    (place / "conf").write_text(conf)
    return ["nginx", "-c", str(place / "conf"), "-e", str(place / "log")]


def _caddy(place: Path, site: Path, port: int, *, stock: bool) -> list[str]:
    text = f"quic.example.org {{\nroot * {site}\nfile_server\n}}\n"
    if not stock:
        text = (ROOT / "web/servers/Caddyfile").read_text().replace("/var/www/quic", str(site))
    text = text.replace("quic.example.org", f"http://127.0.0.1:{port}")
    (place / "conf").write_text(f"{{\nadmin off\n}}\n{text}")
    return ["caddy", "run", "--config", str(place / "conf"), "--adapter", "caddyfile"]


Arguments = Callable[[Path, Path, int], list[str]]
SERVERS: dict[str, tuple[str, Arguments]] = {
    "Apache, stock": ("apache2", lambda *words: _apache(*words, stock=True)),
    "Apache, web/servers": ("apache2", lambda *words: _apache(*words, stock=False)),
    "nginx, stock": ("nginx", lambda *words: _nginx(*words, stock=True)),
    "nginx, web/servers": ("nginx", lambda *words: _nginx(*words, stock=False)),
    "Caddy, stock": ("caddy", lambda *words: _caddy(*words, stock=True)),
    "Caddy, web/servers": ("caddy", lambda *words: _caddy(*words, stock=False)),
}


@contextmanager
def _running(arguments: Arguments, site: Path) -> Iterator[str]:
    """Address of a web server, which ends with the block."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with tempfile.TemporaryDirectory(prefix="quicsat-server-") as folder:
        words = arguments(Path(folder), site, port)
        environment = {"PATH": "/usr/sbin:/usr/bin:/bin", "HOME": folder}
        log = Path(folder, "output")
        with log.open("wb") as output:
            process = subprocess.Popen(words, env=environment, stdout=output, stderr=output)
        try:
            _wait(port, process, log)
            yield f"http://127.0.0.1:{port}/"
        finally:
            process.terminate()
            process.wait()


def _wait(port: int, process: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + PATIENCE
    while process.poll() is None and time.monotonic() < deadline:
        with suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
            return
        time.sleep(0.1)
    raise SystemExit(log.read_text(errors="replace"))


def measure(folder: Path) -> Iterator[Found]:
    """All sinks, one after the other."""
    yield from of_tables()
    yield from of_reports()
    yield from of_latex(folder)
    with sync_playwright() as playwright:
        browser = chromium.start(playwright)
        yield from of_markdown(browser, folder)
        yield from of_figures(browser, folder)
        yield from of_site(browser, hostile.site(folder))
        browser.close()


def main() -> int:
    """Exit status: 0 nothing acted but the control, 1 something did."""
    wrong = 0
    table = PrettyTable(["sink", "reader", "read", "acted"], align="l")
    with tempfile.TemporaryDirectory(prefix="quicsat-sinks-") as folder:
        Path(folder).chmod(0o755)  # web servers read it as another user
        for found in measure(Path(folder)):
            here = found.texts is not None
            wrong += (here and not found.acted) if found.control else found.acted
            table.add_row([found.sink, found.reader, found.texts if here else "not here", found.acted if here else ""])
            print(f"{found.sink}, {found.reader}: {found.texts}, {found.acted} acted", file=sys.stderr, flush=True)
    print(f"{len(ALL)} words; {len(PAYLOADS)} of them are for browsers")
    print(table)
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
