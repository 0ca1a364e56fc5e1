"""Tables whose columns line up."""

from hypothesis import given
from hypothesis import strategies as st

from barograph.cli.support.tables import SHOWN, notes_block, table


def test_columns_are_as_wide_as_their_widest_cell() -> None:
    assert table([["a", "1", "x"], ["bcd", "200", "y"]], right=" >", indent=1) == [" a      1  x", " bcd  200  y"]


def test_rows_may_end_early_and_lines_have_no_blanks_at_their_end() -> None:
    assert table([["a", "", ""], ["bc"]]) == ["a", "bc"]
    assert table([]) == []


@given(st.lists(st.lists(st.text("abc", min_size=1, max_size=9), min_size=3, max_size=3), min_size=1))
def test_the_last_column_begins_at_one_place(rows: list[list[str]]) -> None:
    lines = table(rows)
    assert len({len(line) - len(row[-1]) for line, row in zip(lines, rows, strict=True)}) == 1


def test_many_notes_are_cut_short() -> None:
    assert notes_block([]) == []
    assert len(notes_block(["x"] * (SHOWN + 5))) == 1 + SHOWN + 1
    assert "and 5 more" in notes_block(["x"] * (SHOWN + 5))[-1]
