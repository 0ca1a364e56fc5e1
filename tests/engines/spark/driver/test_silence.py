"""A silent executor is hung only if others report and the driver itself ran all the time."""

import pytest

from barograph.engines.spark.driver.silence import GRACE_S, Judgement, Silence

FRESH = {"1": 0.2, "2": 0.9}


def looked(silence: Silence, *ages_s: dict[str, float], from_s: float = 0.0) -> list[Judgement]:
    """One look a second."""
    return [silence.judge(ages, from_s + k) for k, ages in enumerate(ages_s)]


def test_a_silent_executor_is_hung_while_others_report() -> None:
    found = looked(Silence(12.0), FRESH, {"1": 11.9, "2": 0.2}, {"1": 12.9, "2": 0.4})
    assert found == [Judgement(), Judgement(), Judgement(("1",))]


def test_several_may_hang_at_once() -> None:
    assert looked(Silence(12.0), {"1": 13.0, "2": 14.0, "3": 1.0}) == [Judgement(("1", "2"))]


def test_if_none_reports_none_is_hung_yet() -> None:
    (found,) = looked(Silence(12.0), {"1": 13.0, "2": 5.0})
    assert (found.hung, found.spared) == ((), ("1",))
    assert "no executor reports" in found.because
    assert looked(Silence(12.0), {"1": 13.0})[0].hung == (), "one executor alone"
    assert looked(Silence(12.0), {})[0] == Judgement(), "none has reported yet"


@pytest.mark.parametrize("names", ["1", "12"])
def test_if_none_reports_for_half_as_long_again_all_are_hung(names: str) -> None:
    silence, ages_s = Silence(12.0), [dict.fromkeys(names, float(k)) for k in range(20)]
    found = looked(silence, *ages_s)
    assert [j.hung for j in found] == [()] * 18 + [tuple(names)] * 2
    assert [bool(j.spared) for j in found] == [False] * 12 + [True] * 6 + [False] * 2


def test_if_none_reports_and_a_look_was_late_none_is_hung() -> None:
    """The whole machine was starved, and starting executors again would starve it more."""
    silence = Silence(12.0)
    looked(silence, *({"1": float(k)} for k in range(6)))
    late = looked(silence, *({"1": float(k)} for k in range(10, 28)), from_s=10.0)
    assert all(j.hung == () for j in late)
    assert silence.judge({"1": 28.0}, 28.0).hung == ("1",)


def test_after_a_late_look_executors_have_time_to_report() -> None:
    silence = Silence(12.0)
    looked(silence, FRESH)
    late = silence.judge({"1": 20.0, "2": 0.1}, 20.0)
    assert (late.hung, late.spared) == ((), ("1",))
    assert late.because == "the driver itself did not run for 20 s"
    for second in (21.0, 22.0):
        assert silence.judge({"1": second, "2": 0.1}, second).hung == ()
    assert silence.judge({"1": 23.0, "2": 0.1}, 20.0 + GRACE_S).hung == ("1",), "it is still silent: it hangs"


def test_a_late_look_is_forgotten_once_all_report() -> None:
    silence = Silence(12.0)
    looked(silence, FRESH)
    assert silence.judge({"1": 20.0, "2": 20.0}, 20.0).spared == ("1", "2")
    assert silence.judge(FRESH, 21.0) == Judgement()
