"""What the supervisor of a driver logs and refuses, without Spark."""

import logging
from types import SimpleNamespace
from typing import Any, cast

import pytest

from barograph.engines.spark.driver.supervisor import Supervisor
from barograph.model import Outcome, RefusalCode


def test_a_freeze_and_its_end_are_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    held: list[bool] = []
    driver = cast(Any, SimpleNamespace(frozen=False, engine=SimpleNamespace(pace=SimpleNamespace(hold=held.append))))
    with caplog.at_level(logging.INFO, "barograph"):
        for on in (True, True, False):
            Supervisor.freeze(driver, on)
    assert caplog.messages == ["the driver is frozen: no plan is applied until it is thawed", "the driver is thawed"]
    assert held == [True, True, False] and driver.frozen is False


def test_nodes_stay_while_the_driver_is_frozen_or_a_query_is_started_again() -> None:
    query = SimpleNamespace(topology="counting", isActive=True, await_up=lambda _seconds: False)
    asked: list[object] = []

    def change(release: object, fetch: object) -> Outcome:
        asked.append((release, fetch))
        return Outcome(("fetched n2",))

    driver = cast(Any, SimpleNamespace(frozen=True, queries=[query], node_release=SimpleNamespace(change=change)))
    frozen = Supervisor.keep_nodes(driver, ["n1"], ["n2"])
    assert [(r.node, r.code) for r in frozen.left_out] == [("n1", RefusalCode.FROZEN), ("n2", RefusalCode.FROZEN)]
    assert (frozen.done, asked) == ((), [])
    driver.frozen = False
    down = Supervisor.keep_nodes(driver, ["n1"], ["n2"])
    assert [(r.what, r.code) for r in down.left_out] == [("release of n1", RefusalCode.RESTARTING)]
    assert (down.done, asked) == (("fetched n2",), [((), ["n2"])])


def test_each_part_of_a_close_is_done_whatever_became_of_the_others() -> None:
    done: list[str] = []

    def part(name: str, error: Exception | None = None) -> Any:
        def call() -> None:
            done.append(name)
            if error is not None:
                raise error

        return SimpleNamespace(close=call, stop=call, call=call)

    def driver(error: Exception | None) -> Any:
        made: Any = SimpleNamespace(
            left_limits=SimpleNamespace(lifts=True),
            node_release=part("nodes", error), endpoint=part("endpoint", error),
            _ending=[part(f"ending {k}", error).call for k in range(2)],
            queries=[part(f"query {k}", error) for k in range(2)],
            _upkeep=[part(f"upkeep {k}", error) for k in range(2)],
        )  # fmt: skip
        made._stop_queries = lambda: Supervisor._stop_queries(made)
        return made

    fine = driver(None)
    Supervisor.close(fine)
    ends = ["nodes", "endpoint", "ending 1", "ending 0", "query 0", "query 1", "upkeep 0", "upkeep 1"]
    assert done == ends
    assert fine.endpoint is None and fine._ending == [] and not fine.left_limits.lifts
    done.clear()
    with pytest.raises(ConnectionError, match="the master is away"):
        Supervisor.close(driver(ConnectionError("the master is away")))
    assert done == ends
