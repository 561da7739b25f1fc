"""Lines of the page: figures and their numbers."""

from __future__ import annotations

from scripts.paper.lines import Figure, numbered


def test_figures_are_numbered_in_the_order_of_the_page() -> None:
    first, second = Figure("a/b.png", "Goodput", "All."), Figure("c.png", "Loss", "Some.", "Figure 4")
    assert list(numbered(["text", first, second])) == [
        "text",
        "![Figure 1: Goodput](figures/a/b.png)", "", "**Figure 1:** Goodput. All.", "",
        "![Figure 2: Loss](figures/c.png)", "", "**Figure 2 (Figure 4 of the paper):** Loss. Some.", "",
    ]  # fmt: skip
