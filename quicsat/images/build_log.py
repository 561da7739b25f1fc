"""The line of a build's output that says why it failed: the first error of the step that failed, not the last line."""

import re

from quicsat.model.text import printable

STEP = re.compile(r"Step \d|(\[\d+/\d+\] )?STEP \d")
"""How Docker and podman begin the line with which they announce a step of a build."""
ERROR = re.compile(
    r"(?:^|[\s:(*])(?:(?:fatal |internal compiler )?error|CMake Error|fatal|panic)(?:\[\w+\])?(?: at .*)?:(?:\s|$)"
    r"|^(?:E: |curl: \(|npm ERR!|go: )|^\S+\.go:\d+:\d+: |^\w+(?:Error|Exception): |undefined reference|cannot find -l",
    re.IGNORECASE,
)
"""Errors as compilers, linkers and package managers write them."""
HINT = re.compile(
    r"\*\*\*|not found|no such file|cannot|could not|unable to|failed|denied|killed|no space left", re.IGNORECASE
)
"""Words of lines that may say why, if no line is an error."""
PLACE = "-->"
"""Begin of the line in which rustc names the place of an error. An error that ends with a colon continues, too."""
LONGEST = 300
"""Characters of a line that are shown."""


class BuildLog:
    """Takes the lines of a build one by one, and keeps those that can say why it failed."""

    def __init__(self) -> None:
        self.step = ""
        """The step under way, as the builder announced it."""
        self._error = self._hint = self._last = ""
        self._error_is_last = False

    def add(self, line: str) -> None:
        """The next line."""
        line = printable(line.rstrip())
        if STEP.match(line):
            self.step = _shown(line)
            self._error = self._hint = self._last = ""
            return
        if self._error_is_last and (line.strip().startswith(PLACE) or self._error.endswith(":")):
            self._error = f"{self._error} {line.strip()}"
        self._error_is_last = not self._error and ERROR.search(line) is not None
        if self._error_is_last:
            self._error = line
        elif HINT.search(line):
            self._hint = line
        self._last = (line.strip() and line) or self._last

    @property
    def reason(self) -> str:
        """The first error of the last step, else its last line that looks like one, else its last line."""
        return _shown(self._error or self._hint or self._last)

    def why(self, status: int) -> str:
        """The reason, else how the program ended; ``status`` as of the module subprocess."""
        return self.reason or (f"signal {-status}" if status < 0 else f"exit status {status}")


def _shown(line: str) -> str:
    text = line.strip()
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}…"
