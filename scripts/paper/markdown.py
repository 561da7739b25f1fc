"""Parts of the page that several sections use."""

from __future__ import annotations

from datetime import datetime

from interop.report.table import Table, render


def rendered(table: Table) -> list[str]:
    """A table and an empty line."""
    return [render(table, "markdown"), ""]


def moment(stamp: str) -> str:
    """Date and minute of an RFC 3339 stamp."""
    return datetime.fromisoformat(stamp).strftime("%Y-%m-%d %H:%M")
