"""Tables: the same numbers as text, Markdown, CSV and LaTeX, harmless whatever names hold."""

from textwrap import dedent

from quicsat.report.table import Column, Table, Unit, latex_text, render

TABLE = Table(
    "demo",
    "Numbers & names",
    (Column("name"), Column("rate", Unit.RATE), Column("share", Unit.SHARE, 0), Column("p", Unit.P),
     Column("×", Unit.COUNT)),
    (("a_b", 15.11e6, 0.7555, 0.00001, 3), ("=1+1|<b>", None, None, 0.05, 0)),
    ("A note.",),
)  # fmt: skip


def test_text_is_rounded_for_people() -> None:
    assert render(TABLE, "text") == dedent("""\
        Numbers & names

        ┌──────────┬───────────────┬───────────┬──────────┬───┐
        │ name     │ rate [Mbit/s] │ share [%] │        p │ × │
        ├──────────┼───────────────┼───────────┼──────────┼───┤
        │ a_b      │         15.11 │        76 │ < 0.0001 │ 3 │
        │ =1+1|<b> │               │           │   0.0500 │ 0 │
        └──────────┴───────────────┴───────────┴──────────┴───┘

        A note.""")


def test_markdown_escapes() -> None:
    text = render(TABLE, "markdown")
    assert text.startswith("### Numbers & names\n\n|")
    assert r"=1+1\|\<b\>" in text


def test_csv_is_si_and_no_formula() -> None:
    assert render(TABLE, "csv") == "name,rate [bit/s],share [1],p,×\na_b,15110000.0,0.7555,1e-05,3\n'=1+1|<b>,,,0.05,0"


def test_latex_is_a_booktabs_table() -> None:
    text = render(TABLE, "latex")
    assert r"\caption{Numbers \& names}" in text
    assert r"\begin{tabular}{lrrrr}" in text
    assert r"    name & rate [Mbit/s] & share [\%] & p & $\times$ \\" in text
    assert r"    a\_b & 15.11 & 76 & \textless{} 0.0001 & 3 \\" in text


def test_latex_runs_nothing() -> None:
    assert latex_text(r"\input{/etc/passwd}$x$%") == r"\textbackslash{}input\{/etc/passwd\}\$x\$\%"


def test_ends_of_an_interval_never_look_the_same() -> None:
    columns = (Column("low", Unit.SHARE, 1), Column("high", Unit.SHARE, 1))
    table = Table("demo", "Intervals", columns, ((0.01601, 0.01604), (0.5, 0.5), (0.1, 0.2)))
    lines = render(table, "markdown").splitlines()
    fields = [[field.strip() for field in line.strip("|").split("|")] for line in lines if line.startswith("|")][2:]
    assert fields == [["1.601", "1.604"], ["", ""], ["10.0", "20.0"]]


def test_text_has_no_table_without_rows_and_no_column_without_a_value() -> None:
    columns = (Column("server"), Column("n", Unit.COUNT), Column("empty", Unit.COUNT))
    assert render(Table("demo", "Nothing", columns, (), ("A note.",)), "text") == "Nothing\n\nA note."
    some = render(Table("demo", "Some", columns, (("a", 1, None), ("b", 2, None))), "text")
    assert "empty" not in some
    assert render(Table("demo", "Nothing", columns, ()), "csv") == "server,n,empty"
