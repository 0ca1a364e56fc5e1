"""What the bench of CPU limits calls too far off."""

import pytest
from bench.enforcement import Use


@pytest.mark.parametrize(
    ("wanted_pct", "ten_s", "one_s", "met"),
    [
        (5.0, 5.9, [5.9], (True, True)),
        (5.0, 6.1, [5.0, 6.2], (False, True)),
        (5.0, 3.9, [5.0, 3.7], (False, False)),
        (60.0, 65.9, [60.0, 74.9], (True, True)),
        (60.0, 66.1, [75.1, 60.0], (False, False)),
        (100.0, 91.0, [76.0], (True, True)),
        (100.0, 89.0, [100.0, 74.0], (False, False)),
    ],
)
def test_it_may_be_off_by_a_tenth_or_a_point_and_in_a_second_by_a_quarter(
    wanted_pct: float, ten_s: float, one_s: list[float], met: tuple[bool, bool]
) -> None:
    whole, second = Use(ten_s, one_s, 50.0).off(wanted_pct)
    assert (whole <= 1.0, second <= 1.0) == met
