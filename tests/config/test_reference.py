"""The reference page is what the declarations say."""

from pathlib import Path

from barograph.config import OPTIONS
from barograph.config.reference import reference

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "configuration.md"


def test_the_page_is_fresh() -> None:
    assert PAGE.read_text(encoding="utf-8") == reference(), (
        "barograph config reference > docs/reference/configuration.md"
    )


def test_every_option_is_on_it() -> None:
    assert all(f"| `{name}` |" in reference() for name in OPTIONS)
