"""Results of schema version 1, which had two members for each property of a link: ``forward_x`` and ``return_x``."""

import json
from collections.abc import Iterator
from typing import Any

DIRECTIONS = {"forward_": "forward", "return_": "back"}
"""Prefix of the members -> the member that has them in version 2."""
CLIENT_SIDE = "client_side_"


def from_version_1(text: bytes) -> bytes | None:
    """A line of the journal or a result.json as version 2 has it; None if nothing in it is of version 1, or no JSON.

    Lines with results do not state their version, so their members decide. What is wrong in it stays wrong.
    """
    try:
        plain = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if not isinstance(plain, dict):
        return None
    changed = [_divide(link) for link in _links(plain)] + [_divide(report) for report in _reports(plain)]
    if plain.get("schema_version") == 1:
        plain["schema_version"] = 2
    elif not any(changed):
        return None
    return json.dumps(plain).encode()


def _links(plain: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """All links of a manifest, and those at the client's side."""
    for manifest in _mappings(plain.get("manifest"), plain.get("data")):
        for case in _mappings(*_list(manifest.get("test_cases"))):
            for link in _mappings(case.get("link")):
                yield from _mappings(link.get("client_side"))
                yield link


def _reports(plain: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """All reports of the simulator."""
    for result in _mappings(plain.get("data"), *_list(plain.get("results")), *_list(plain.get("earlier"))):
        for evidence in _mappings(result.get("evidence")):
            for report in _mappings(evidence.get("simulator")):
                beside = {name: report.pop(CLIENT_SIDE + name, None) for name in DIRECTIONS.values()}
                if any(beside.values()):
                    report["client_side"] = beside
                yield report


def _divide(owner: dict[str, Any]) -> bool:
    """Move the members of each direction into one; whether there were any."""
    moved = False
    for prefix, name in DIRECTIONS.items():
        members = {key.removeprefix(prefix): owner.pop(key) for key in [*owner] if key.startswith(prefix)}
        if members:
            known = owner.get(name)
            owner[name] = (known if isinstance(known, dict) else {}) | members
            moved = True
    return moved


def _mappings(*values: Any) -> Iterator[dict[str, Any]]:
    return (value for value in values if isinstance(value, dict))


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
