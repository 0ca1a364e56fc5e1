"""The reference page is what the declarations say."""

import re
from pathlib import Path

import barograph
from barograph.config import OPTIONS
from barograph.config.reference import reference
from barograph.engines.spark.cluster.processes import NODE_MARK, RUN_MARK

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "configuration.md"


def test_the_page_is_fresh() -> None:
    assert PAGE.read_text(encoding="utf-8") == reference(), (
        "barograph config reference > docs/reference/configuration.md"
    )


def test_every_option_is_on_it() -> None:
    assert all(f"| `{name}` |" in reference() for name in OPTIONS)


def test_every_variable_of_the_environment_is_on_it() -> None:
    """But those by which Barograph marks its own processes."""
    source = Path(barograph.__file__).parent
    files = [f for f in source.rglob("*.py") if "testing" not in f.parts and f.name != "reference.py"]
    named = {name for f in files for name in re.findall(r'"(BAROGRAPH_[A-Z_]+)"', f.read_text(encoding="utf-8"))}
    assert named - {RUN_MARK, NODE_MARK} == set(re.findall(r"`(BAROGRAPH_[A-Z_]+)`", reference()))
