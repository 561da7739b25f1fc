"""Debian's Chromium without user interface, and pages that note each request to elsewhere, error and violation."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Literal

from playwright.sync_api import Browser, Dialog, Page, Playwright, Request

PROGRAM = "/usr/bin/chromium-headless-shell"
"""It needs less than half of the CPU time of ``chromium --headless``."""
FEATURES_OFF = (
    # Each page in a frame of its own, and a process in reserve: they need a sixth of Chromium's CPU time.
    "RenderDocument",
    "SpareRendererForSitePerProcess",
    # What Playwright turns off, since its own option gives way to this one.
    "AvoidUnnecessaryBeforeUnloadCheckSync",
    "DestroyProfileOnBrowserClose",
    "HttpsFirstBalancedModeAutoEnable",
    "HttpsUpgrades",
    "MediaRouter",
    "NetworkTimeServiceQuerying",
    "OptimizationHints",
    "PaintHolding",
    "ThirdPartyStoragePartitioning",
)
OPTIONS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-software-rasterizer",
    "--num-raster-threads=1",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    f"--disable-features={','.join(FEATURES_OFF)}",
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
]
AXE = Path("build", "vendor", "axe-core", "axe.min.js")
"""Where scripts/setup --dev puts axe-core, below the checkout."""
AXE_TAGS = ("wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "best-practice")
PATIENCE = 60
"""Seconds. Pages load their data after they are shown, which takes long where all CPUs are busy."""
_WATCH = """
window.violations = [];
addEventListener("securitypolicyviolation",
  (event) => violations.push(`${event.violatedDirective} ${event.blockedURI}`));
"""

_PIXELS = """([name, at]) => {
  const probe = document.createElement("canvas").getContext("2d");
  probe.fillStyle = getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
  probe.fillRect(0, 0, 1, 1);
  const [r, g, b] = probe.getImageData(0, 0, 1, 1).data;
  const canvas = document.querySelectorAll("[data-panel=offset] canvas")[at];
  const { data, width } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
  const found = [];
  for (let i = 0; i < data.length; i += 4) {
    if (data[i] === r && data[i+1] === g && data[i+2] === b) found.push([(i / 4) % width, Math.floor(i / 4 / width)]);
  }
  return found;
}"""


@dataclass(frozen=True)
class Site:
    """A built site and where it is served."""

    directory: Path
    address: str

    def pages(self, pattern: str = "**/*.html") -> list[str]:
        """Addresses below the root."""
        return [str(path.relative_to(self.directory)) for path in sorted(self.directory.glob(pattern))]


@dataclass
class Watched:
    """A page and what went wrong in it."""

    page: Page
    complaints: list[str] = field(default_factory=list)

    def open(self, address: str) -> None:
        """Load a page, deferred scripts too."""
        self.page.goto(address, wait_until="load")
        violations = self.page.evaluate("window.violations")
        self.complaints += [f"{address}: {each}" for each in violations]

    def check(self) -> None:
        """Nothing went wrong."""
        assert self.complaints == []


def start(playwright: Playwright) -> Browser:
    """Start it, with user data in a fresh directory."""
    return playwright.chromium.launch(executable_path=PROGRAM, args=OPTIONS)


def choose(page: Page, name: str) -> None:
    """Open the filter that has the choice ``name``, and click it."""
    menu = page.locator("#filters details", has=page.locator(f"button[value={name}]")).first
    if menu.get_attribute("open") is None:
        menu.locator("summary").click()
    menu.locator(f"button[value={name}]").click()


def pixels(page: Page, ink: str, plot: int = 0) -> list[list[int]]:
    """Places, x and y, that have an ink of the style sheet, in one of the plots of offsets."""
    found: list[list[int]] = page.evaluate(_PIXELS, [ink, plot])
    return found


@contextmanager
def plain_server(directory: Path, handler: type[SimpleHTTPRequestHandler] = SimpleHTTPRequestHandler) -> Iterator[str]:
    """A server without the policy of the site's own one."""
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(handler, directory=str(directory))) as found:
        thread = Thread(target=found.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{found.server_port}/"
        finally:
            found.shutdown()
            thread.join()


def violations(page: Page, axe: str) -> list[str]:
    """What axe-core, whose source is ``axe``, finds in a page: rule, place and explanation."""
    page.evaluate(axe)
    told = page.evaluate("(values) => axe.run({runOnly: {type: 'tag', values}})", list(AXE_TAGS))
    return [
        f"{each['id']}: {node['target']} {node['failureSummary']}"
        for each in told["violations"]
        for node in each["nodes"][:3]
    ]


@contextmanager
def watched(
    browser: Browser, width: int = 1280, scheme: Literal["light", "dark"] = "light", *, ratio: float = 1
) -> Iterator[Watched]:
    """A page in a context of its own."""
    context = browser.new_context(
        viewport={"width": width, "height": 900},
        color_scheme=scheme,
        device_scale_factor=ratio,
        reduced_motion="reduce",
    )
    context.set_default_timeout(PATIENCE * 1000)
    page = context.new_page()
    found = Watched(page)

    def local_only(request: Request) -> None:
        if re.match(r"(https?|wss?):(?!//127\.0\.0\.1:)", request.url):
            found.complaints.append(f"asked for {request.url}")

    def refuse(dialog: Dialog) -> None:
        found.complaints.append(f"dialog {dialog.message}")
        dialog.dismiss()

    page.on("request", local_only)
    page.add_init_script(_WATCH)
    page.on("console", lambda told: found.complaints.append(told.text) if told.type == "error" else None)
    page.on("pageerror", lambda error: found.complaints.append(str(error)))
    page.on("dialog", refuse)
    try:
        yield found
    finally:
        context.close()
