"""Topologies are stopped together, something is done once, and all start again."""

from dataclasses import dataclass, field

from barograph.engines.spark.turns import Between, Turn, turned, turned_together


@dataclass
class Kept:
    """A topology that writes down what happens to it."""

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
    turns = {"a": Turn(Kept("a", log)), "b": Turn(Kept("b", log), 3)}
    assert turned(turns) == {"a": "", "b": ""}
    assert log == ["a stops", "a starts", "b stops for 3", "b starts"]


def test_all_are_down_together() -> None:
    log: list[str] = []

    def replace() -> str:
        log.append("replaced")
        return ""

    turns = {name: Turn(Kept(name, log)) for name in ("a", "b")}
    assert turned_together(turns, "workers", replace) == {"a": "", "b": "", "workers": ""}
    assert log == ["a stops", "b stops", "replaced", "b starts", "a starts"]


def test_where_one_cannot_be_stopped_nothing_is_done() -> None:
    log: list[str] = []
    turns = {"a": Turn(Kept("a", log)), "b": Turn(Kept("b", log, "it does not run"))}
    found = turned_together(turns, "workers", lambda: "this is never asked")
    assert found == {"a": "", "b": "it does not run"}
    assert log == ["a stops", "a starts"]


def test_what_went_wrong_between_is_told() -> None:
    kept, why = Kept("a"), "no others came"
    assert turned_together({"a": Turn(kept)}, "workers", lambda: why) == {"a": "", "workers": why}
    assert kept.log == ["a stops", "a starts"]
