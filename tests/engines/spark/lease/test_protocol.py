"""The model: with the fence no order of events loses a row or counts one twice, without it some do."""

from tests.engines.spark.lease.protocol import Protocol, search, walked, wrong


def test_no_order_of_events_loses_a_row_or_counts_one_twice() -> None:
    found = search(Protocol())
    assert found.why == "", found.trace
    assert found.states > 10_000
    # Among the ends are those with everything committed, so the drivers did something.
    assert any(len(state.disk.commits) == 2 for state in found.ends)


def test_without_the_fence_a_stopped_owner_commits_over_the_next_one() -> None:
    protocol = Protocol(fenced=False)
    found = search(protocol)
    assert found.why
    assert wrong(walked(protocol, found.trace).disk) == found.why
    assert {step.driver for step in found.trace} == {0, 1}
    # The last step is that of the owner that was stopped between its look and its move.
    assert found.trace[-1].name.startswith("move") and found.trace[-1].driver == 0
