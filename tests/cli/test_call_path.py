"""How many functions of the program one run of one pair passes, from the command line to result.json."""

import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from quicsat.execution import campaign_setup
from quicsat.results import store
from tests.cli.conftest import Checkout
from tests.fakes import FakeEngine

MOST = 30
STAGES: tuple[tuple[object, str], ...] = (
    (ThreadPoolExecutor, "submit"),
    (FakeEngine, "start"),
    (campaign_setup, "analyse_once"),
    (store.Journal, "append_result"),
    (store, "new_file"),
)
"""Where a run is handed to a thread, makes its transfer, is analysed, gets into the journal, and into result.json."""


def functions_under_way() -> list[str]:
    """The program's functions that are under way in this thread, the outermost first."""
    found: list[str] = []
    frame = sys._getframe(1)
    while frame.f_back is not None:
        frame = frame.f_back
        if "/quicsat/" in frame.f_code.co_filename and not frame.f_code.co_name.endswith("comp>"):
            found.insert(0, f"{frame.f_globals['__name__']}:{frame.f_code.co_qualname}")
    return found


def is_client(engine: FakeEngine, identity: str) -> bool:
    """Whether a container is that of the client."""
    return engine.lives[identity].environment.get("ROLE") == "client"


def test_a_run_passes_few_functions(checkout: Checkout, monkeypatch: pytest.MonkeyPatch) -> None:
    path: dict[str, None] = {}

    def noting(act: Callable[..., Any]) -> Callable[..., Any]:
        def noted(*words: Any, **options: Any) -> Any:
            if (act is not start or is_client(*words)) and (act is not submit or "worker_loop" in str(words[1])):
                own = [act.__qualname__] if act not in (start, submit) else []
                path.update(dict.fromkeys([*functions_under_way(), *own]))
            return act(*words, **options)

        return noted

    start, submit = FakeEngine.start, ThreadPoolExecutor.submit
    for owner, name in STAGES:
        monkeypatch.setattr(owner, name, noting(getattr(owner, name)))
    assert checkout("-s", "good", "-c", "good", "-t", "tiny", "--skip-compliance-check")[0] == 0
    assert [name for name in path if "write_result_json" in name]
    assert len(path) <= MOST, "\n".join(path)
