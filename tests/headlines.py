"""One rule for the headlines of every paper: met, or missed with a cause; the essential ones met."""

from collections.abc import Iterable

from barograph.experiments.headlines.headline import Paper, check


def require_headlines(paper: Paper, strict: Iterable[str]) -> None:
    """strict: words of those that have to be met."""
    found = check(paper)
    assert [h for h in found if not h.excused] == []
    for words in strict:
        named = [h for h in found if words in h.what]
        assert named, words
        assert [h for h in named if not h.met] == [], words
