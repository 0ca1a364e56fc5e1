"""Topologies are stopped together, something is done once, and all start again."""

from dataclasses import dataclass, field

from barograph.engines.spark.orders.planned_restarts import Between, PlannedRestart, restart_each, restart_together


@dataclass
class Recorded:
    """A query that records what happens to it."""

    name: str
    log: list[str] = field(default_factory=list)
    refuses: str = ""
    doing: str = ""

    def repartition(self, count: int | None, between: Between | None = None) -> str:
        if self.refuses:
            return self.refuses
        self.log.append(f"{self.name} stops" + ("" if count is None else f" for {count}"))
        problem = "" if between is None else between()
        self.log.append(f"{self.name} starts")
        return problem


def test_one_after_the_other() -> None:
    log: list[str] = []
    restarts = {"a": PlannedRestart(Recorded("a", log)), "b": PlannedRestart(Recorded("b", log), 3)}
    assert restart_each(restarts) == {"a": "", "b": ""}
    assert log == ["a stops", "a starts", "b stops for 3", "b starts"]


def test_all_are_down_together() -> None:
    log: list[str] = []

    def replace() -> str:
        log.append("replaced")
        return ""

    restarts = {name: PlannedRestart(Recorded(name, log)) for name in ("a", "b")}
    assert restart_together(restarts, "workers", replace) == {"a": "", "b": "", "workers": ""}
    assert log == ["a stops", "b stops", "replaced", "b starts", "a starts"]


def test_if_one_cannot_be_stopped_nothing_is_done() -> None:
    log: list[str] = []
    restarts = {"a": PlannedRestart(Recorded("a", log)), "b": PlannedRestart(Recorded("b", log, "it does not run"))}
    found = restart_together(restarts, "workers", lambda: "this is never called")
    assert found == {"a": "", "b": "it does not run"}
    assert log == ["a stops", "a starts"]


def test_a_failure_of_the_work_between_is_reported() -> None:
    kept, why = Recorded("a"), "no others came"
    assert restart_together({"a": PlannedRestart(kept)}, "workers", lambda: why) == {"a": "", "workers": why}
    assert kept.log == ["a stops", "a starts"]
