"""The version of this program: from the tags of a checkout, from the metadata of an installed package."""

import os
import re
import subprocess
from functools import cache
from pathlib import Path

from quicsat.model import product_files
from quicsat.model.text import printable

ARCHIVAL = ".git_archival.txt"
"""What `git archive` writes the description of its commit into; hatch-vcs reads it, too."""
UNKNOWN = "0"
"""The release of a checkout without git and tags."""
PATIENCE = 10.0
"""Seconds that git may take."""
_RELEASE = re.compile(r"v(\d[\w.]*)(?:-\d+-g[0-9a-f]+)?(?:-dirty)?")


def release() -> str:
    """The newest release that this program contains: ``1.0.0``."""
    if product_files.is_packaged():
        return tool_version()
    found = _RELEASE.fullmatch(tool_version())
    return found[1] if found else UNKNOWN


@cache
def tool_version(root: Path | None = None) -> str:
    """What ``git describe`` prints in a checkout: ``v1.2-3-gd8a2457-dirty``, or a commit without tags.

    In the archive of a commit, its description there. The version of the package if it is installed. ``UNKNOWN`` if
    git is missing or fails. ``root`` is the checkout, by default that of this program.
    """
    if root is None and product_files.is_packaged():
        from importlib.metadata import version

        return version("quicsat")
    root = root or product_files.FILES
    # Not "is inside a work tree": a folder may lie in another project.
    return (_described(root) if (root / ".git").exists() else _archived(root)) or UNKNOWN


def _described(root: Path) -> str:
    command = ["git", "--no-optional-locks", "-C", str(root), "describe", "--tags", "--match=v[0-9]*"]
    command += ["--always", "--dirty"]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    try:
        answer = subprocess.run(
            command, env=environment, capture_output=True, timeout=PATIENCE, check=True, text=True, errors="replace"
        )
    except (OSError, subprocess.SubprocessError):
        return ""
    return printable(answer.stdout)


def _archived(root: Path) -> str:
    try:
        text = (root / ARCHIVAL).read_text(encoding="utf-8")
    except OSError:
        return ""
    found = re.search(r"^describe-name: (v\d[\w.-]*)$", text, re.MULTILINE)
    return found[1] if found else ""
