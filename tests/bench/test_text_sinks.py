"""Part of `make bench-text-sinks`: what needs neither a browser nor another program."""

from bench.text_sinks import ELEMENTS, of_reports, of_tables, pages_of_markdown
from tests.payloads import ALL


def test_words_in_tables_and_reports_only_stand_there() -> None:
    found = [*of_tables(), *of_reports()]
    assert {each.sink for each in found} == {"CSV", "terminal", "JUnit", "annotations"}
    assert [(each.sink, each.texts, each.acted) for each in found if each.texts != len(ALL) or each.acted] == []


def test_words_in_markdown_make_no_element() -> None:
    pages = [*pages_of_markdown()]
    assert len(pages) == 2 * len(ALL)
    assert [html for html in pages if ELEMENTS.search(html)] == []
