"""Repeated rows are removed from the output once; the times at which rows left stay."""

from barograph.experiments.figures.repeats import RestartReport, first_time_output

OUTPUT = {100: 5, 101: 5, 300: 4, 301: 7, 302: 2}


def restart(at_s: float, repeated: int) -> RestartReport:
    return RestartReport(at_s, "lost executor 1", 1.0, repeated, repeated)


def test_without_restarts_nothing_changes() -> None:
    assert first_time_output(OUTPUT, [], 0) == OUTPUT


def test_repeated_rows_are_the_first_after_the_failure() -> None:
    assert first_time_output(OUTPUT, [restart(1.5, 10)], 0) == {100: 5, 101: 5, 300: 0, 301: 1, 302: 2}


def test_several_failures_each_remove_their_own_rows() -> None:
    assert first_time_output(OUTPUT, [restart(1.5, 4), restart(3.015, 1)], 0) == {**OUTPUT, 300: 0, 302: 1}


def test_the_load_may_start_at_any_time() -> None:
    shifted = {t + 1000: rows for t, rows in OUTPUT.items()}
    assert first_time_output(shifted, [restart(1.5, 4)], 10_000)[1300] == 0
