"""The order of merit: late rows, then mean complete time within 10 %, then CPU allotted."""

from bench._merit import Run, ranked, why_not


def run(policy: str, late: float, mean_ms: float, cpu_s: float) -> Run:
    return Run(policy, late, mean_ms, 0.0, cpu_s, 0.0, 2.0, 0, 0, 0.0)


def test_the_order_of_merit() -> None:
    runs = [
        run("late", 5, 1.0, 1.0),
        run("quick", 0, 10.0, 900.0),
        run("as quick and cheap", 0, 10.9, 300.0),
        run("slow", 0, 11.1, 100.0),
    ]
    assert [r.policy for r in ranked(runs)] == ["as quick and cheap", "quick", "slow", "late"]


def test_why_somebody_is_behind() -> None:
    best = run("best", 0, 10.0, 200.0)
    assert why_not(run("m", 7, 1.0, 100.0), best).startswith("7 late rows against 0 of best, which allots 2.0 times")
    assert why_not(run("m", 0, 20.0, 100.0), best).startswith("mean complete time 20.0 ms against 10.0 ms of best")
    assert why_not(run("m", 0, 10.5, 400.0), best) == "best is as quick and allots 200 CPU-s against 400"
