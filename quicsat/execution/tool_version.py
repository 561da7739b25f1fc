"""The version of this program: from git in a checkout, from the package where it is installed."""

from __future__ import annotations

import os
import subprocess
from functools import cache
from pathlib import Path

import quicsat
from quicsat.model.text import printable

ROOT = Path(quicsat.__file__).resolve().parents[1]
"""The checkout, or the directory in which the package is installed."""
PATIENCE = 10.0
"""Seconds that git may take."""


@cache
def tool_version(root: Path = ROOT) -> str:
    """What ``git describe --always --dirty`` prints in ``root``: ``v1.2-3-gd8a2457-dirty``, or a commit without tags.

    ``quicsat.__version__`` if ``root`` is not the top of a git work tree, or if git is missing or fails.
    """
    if not (root / ".git").exists():  # not "is inside a work tree": a virtual environment may lie in another project
        return quicsat.__version__
    command = ["git", "--no-optional-locks", "-C", str(root), "describe", "--always", "--dirty"]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    try:
        answer = subprocess.run(
            command, env=environment, capture_output=True, timeout=PATIENCE, check=True, text=True, errors="replace"
        )
    except (OSError, subprocess.SubprocessError):
        return quicsat.__version__
    return printable(answer.stdout) or quicsat.__version__
