"""The cost models of one implementation in the text of implementations.json."""

import json
from pathlib import Path

import pytest

from quicsat.config.cost_entry import with_cpu_cost
from quicsat.config.loader import load_implementations
from quicsat.model.cpu_cost import CostModel, CpuCost
from quicsat.model.errors import InputError
from quicsat.model.product_files import FILES

TEXT = (FILES / "implementations.json").read_text(encoding="utf-8")
MODEL = CostModel(1.23456e-6, 0.0, 2e-6, 1e-5, 123.456e-6, 1.2345e-3)
COST = CpuCost(MODEL, MODEL, "2026-11-28", "A Processor", "v1.2")


def test_it_is_read_as_it_was_rounded(tmp_path: Path) -> None:
    text = with_cpu_cost(with_cpu_cost(TEXT, "quic-go", COST), "nginx", CpuCost(MODEL, None, "2026-11-28", "P"))
    (tmp_path / "implementations.json").write_text(text, encoding="utf-8")
    read = load_implementations(tmp_path / "implementations.json")
    rounded = CostModel(1.23e-6, 0.0, 2e-6, 1e-5, 123e-6, 1.23e-3)
    assert read["quic-go"].cpu_cost == CpuCost(rounded, rounded, "2026-11-28", "A Processor", "v1.2")
    assert read["nginx"].cpu_cost.server == rounded


def test_the_rest_of_the_text_stays() -> None:
    changed = with_cpu_cost(TEXT, "quic-go", COST)
    kept = [line for line in TEXT.splitlines() if line in changed.splitlines()]
    assert len(kept) > len(TEXT.splitlines()) - 25
    assert with_cpu_cost(changed, "quic-go", COST) == changed


@pytest.mark.parametrize("keys", ['    "url": "u"\n', '    "url": "u",\n    "cpu cost": {"client": "3 us"}\n'])
def test_a_new_key_and_a_role_without_a_model(keys: str) -> None:
    text = f'{{\n  "b": {{\n    "url": "v"\n  }},\n  "a": {{\n{keys}  }}\n}}\n'
    changed = with_cpu_cost(text, "a", CpuCost(MODEL, None, "2026-11-28", ""))
    own = json.loads(changed)["a"]["cpu cost"]
    assert own["server"]["datagram received"] == "123 us"
    assert own.get("client") == ("3 us" if "3 us" in keys else None)
    assert changed.startswith(text[: text.index(keys)] + '    "url": "u",\n')


@pytest.mark.parametrize("text", ['{"a": {"url": "u"}}', '{\n  "a": {"url": "u"}\n}'])
def test_a_text_of_another_format_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="format"):
        with_cpu_cost(text, "a", COST)


def test_an_entry_and_costs_that_cannot_be() -> None:
    with pytest.raises(InputError, match="no entry"):
        with_cpu_cost(TEXT, "strange", COST)
    with pytest.raises(InputError, match="quic-go, server: send"):
        with_cpu_cost(TEXT, "quic-go", CpuCost(CostModel(1.0, 0, 0, 0, 0, 0)))
