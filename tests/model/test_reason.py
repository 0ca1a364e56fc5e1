"""Reasons and refusals carry codes, which are listed for users as they are."""

import re
from enum import StrEnum
from pathlib import Path

import pytest

from barograph.model import BadInput, Reason, ReasonCode, Refusal, RefusalCode

LISTED = Path(__file__).parents[2] / "docs" / "history.md"


@pytest.mark.parametrize(("codes", "title"), [(ReasonCode, "Codes of reasons"), (RefusalCode, "Codes of refusals")])
def test_the_page_on_histories_lists_every_code(codes: type[StrEnum], title: str) -> None:
    section = LISTED.read_text().partition(f"## {title}")[2].partition("\n## ")[0]
    assert re.findall(r"^\| `([a-z-]+)` \|", section, re.MULTILINE) == [code.value for code in codes]


@pytest.mark.parametrize("codes", [ReasonCode, RefusalCode])
def test_codes_are_short_words_with_hyphens(codes: type[StrEnum]) -> None:
    assert all(re.fullmatch(r"[a-z]+(-[a-z]+){0,3}", code) for code in codes)


def test_a_sentence_is_no_code() -> None:
    with pytest.raises(BadInput, match="the reason about t needs a code, not 'because'"):
        Reason("t", "because", "it")  # type: ignore[arg-type]
    with pytest.raises(BadInput, match="the refusal of t needs a code, not 'because'"):
        Refusal("t", "because", "it")  # type: ignore[arg-type]
