"""The objects of a page have their sizes, and each names those that come after it."""

import random
import re

import pytest

from quicsat.config.workloads import load_workloads
from quicsat.execution.page_files import SUFFIXES, page_object
from quicsat.model.workload import ObjectType, RequestOrder, Workload
from tests.engine.conftest import ROOT

PAGES = {name: each for name, each in load_workloads(ROOT / "testcases/workloads").items() if each.workload.types}


@pytest.mark.parametrize("name", PAGES)
def test_each_object_names_its_followers_and_no_others(name: str) -> None:
    page, numbers = PAGES[name], random.Random(1)
    types, after = page.workload.types, page.workload.after
    names = [f"{place:016x}{SUFFIXES[kind]}" for place, kind in enumerate(types)]
    for place, size in enumerate(page.file_sizes):
        content = page_object(place, size, page.workload, names, numbers)
        assert len(content) == size
        found = set(re.findall(r"[0-9a-f]{16}\.(?:html|css|js|gif)", content.decode("latin-1")))
        assert found & set(names) == {names[other] for other, before in enumerate(after) if before == place + 1}


def test_an_object_that_is_too_small_is_refused() -> None:
    page = Workload("", RequestOrder.ORDERED, (0, 1), (ObjectType.HTML, ObjectType.IMAGE))
    with pytest.raises(ValueError, match="too few to name 1"):
        page_object(0, 20, page, ("a.html", "b.gif"), random.Random(1))
    with pytest.raises(ValueError, match="cannot be followed by 0"):
        page_object(1, 20, page, ("a.html", "b.gif"), random.Random(1))
