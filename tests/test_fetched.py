"""A skip does not hide where tests run unattended."""

import pytest
from _pytest.outcomes import Failed, Skipped

from barograph.maven import FetchFailed
from tests.fetched import needs_fetched


def cannot_fetch() -> None:
    with needs_fetched():
        raise FetchFailed("no repository can be reached")


@pytest.mark.parametrize(("value", "outcome"), [("", Skipped), ("true", Failed)])
def test_what_cannot_be_fetched_is_a_skip_or_in_ci_a_failure(
    value: str, outcome: type[BaseException], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CI", value)
    with pytest.raises(outcome, match="no repository"):
        cannot_fetch()
