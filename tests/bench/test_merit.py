"""The order of merit: late rows, then mean complete time within 10 %, then CPU reserved."""

from bench._merit import Run, ranked, why_not


def run(policy: str, late: float, mean_ms: float, cpu_s: float, nodes: float = 2.0, changes: int = 0) -> Run:
    return Run(policy, late, mean_ms, 0.0, cpu_s, 50.0, nodes, 0, changes, 0.0)


def test_the_order_of_merit() -> None:
    runs = [
        run("late", 5, 1.0, 1.0),
        run("quick", 0, 10.0, 900.0),
        run("as quick and cheap", 0, 10.9, 300.0),
        run("slow", 0, 11.1, 100.0),
    ]
    assert [r.policy for r in ranked(runs)] == ["as quick and cheap", "quick", "slow", "late"]


def test_of_equal_runs_the_default_comes_first() -> None:
    runs = [run("dps", 0, 10.0, 300.2), run("adaptive", 0, 10.5, 300.4), run("even", 0, 9.9, 310.0)]
    assert [r.policy for r in ranked(runs)] == ["adaptive", "dps", "even"]


def test_why_a_policy_is_behind() -> None:
    best = run("best", 0, 10.0, 200.0)
    late, slow, dear, placed = (
        why_not(mine, best)
        for mine in (
            run("adaptive", 7, 1.0, 100.0),
            run("adaptive", 0, 20.0, 100.0, nodes=1.0, changes=3),
            run("adaptive", 0, 10.5, 400.0, nodes=4.0),
            run("adaptive", 0, 20.0, 200.0),
        )
    )
    assert late == "7 late rows against 0 of best; it reserves 2.0 times the CPU"
    assert slow == (
        "mean complete time 20.0 ms against 10.0 ms of best; it spreads over 2.0 nodes where adaptive keeps to 1.0 and "
        "it reserves 2.0 times the CPU and it has 0 reconfigurations where adaptive has 3"
    )
    assert dear == (
        "best is as quick (10.0 ms against 10.5) and reserves 200 CPU-s against 400; it keeps all on 2.0 nodes and "
        "uses 25% of them on average, where adaptive keeps room to grow on 4.0"
    )
    assert placed.endswith("it does so by its placement alone")
