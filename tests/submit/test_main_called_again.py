"""Main of a submitted jar is called again when a query died of what another call may mend, and else not."""

import pytest
from tests.engines.spark.query.start.test_first_size import words
from tests.submit.fake_application import Application, SeenEngine, error_of, run_id

from barograph.engines.spark.query.failures.diagnosis import RestartLimits
from barograph.engines.spark.query.start import first_size
from barograph.engines.spark.query.start.first_size import PARTITIONS
from barograph.submit.jvm_deaths.main_deaths import dead_query
from barograph.submit.jvm_program import MainFailed

LIMITS = RestartLimits(first_wait_s=0.001, longest_wait_s=0.002)
LOST = "ExecutorLostFailure (executor 1 exited)"
BUG = "(TID 7) (host executor 1): java.lang.ArithmeticException: / by zero"
NO_TOPIC = "org.apache.kafka.common.errors.UnknownTopicOrPartitionException: This server does not host this partition"
NO_SEATS = "[CONCURRENT_SCHEDULER_INSUFFICIENT_SLOT] It needs 204 concurrent task slots, but only 8 are currently free"


def test_a_main_that_awaits_any_query_waits_again_after_a_lost_executor() -> None:
    """Also where a query does not stop: its main starts it again, and Spark ends the run then."""

    def main(application: Application) -> None:
        assert application.called <= 2, "the error of the first call came again"
        one, two = (application.streams.start(name) for name in ("one", "two"))
        if application.called == 1:
            two.refuses_to_stop = True
            one.die(LOST)
        application.streams.await_any()

    application = Application(main, SeenEngine())
    application.run(LIMITS)
    assert application.called == 2
    assert [line.endswith("counts.Main is called again") for line in application.said] == [True]


def test_an_error_that_spark_keeps_is_forgotten_where_queries_cannot_even_be_listed() -> None:
    def main(application: Application) -> None:
        assert application.called <= 2
        if application.called == 1:
            application.streams.start("one").die(LOST)
            vars(application.streams)["active"] = None
        application.streams.await_any()

    application = Application(main)
    application.run(LIMITS)
    assert application.called == 2


def dies(cause: str, engine: SeenEngine, epochs: int, calls: int) -> Application:
    """An application whose query dies in each of so many calls, each time after it began so many epochs."""

    def main(application: Application) -> None:
        if application.called <= calls:
            query = application.streams.start("words")
            engine.plans("words", query.run, *range(epochs))
            query.die(cause)
        application.streams.await_any()

    return Application(main, engine)


def test_three_equal_failures_with_commits_between_are_no_bug() -> None:
    application = dies(BUG, SeenEngine(), epochs=2, calls=5)
    application.run(LIMITS)
    assert application.called == 6


def test_three_equal_failures_without_a_commit_are_one() -> None:
    application = dies(BUG, SeenEngine(), epochs=1, calls=5)
    with pytest.raises(MainFailed, match="ArithmeticException"):
        application.run(LIMITS)
    assert application.called == 3
    assert application.said[-1].startswith("counts.Main is not called again: a bug in the query: 3 times the same")


def test_lost_executors_with_commits_between_are_never_too_many() -> None:
    limits = RestartLimits(in_a_row=3, keep_trying_s=0.0)
    application = dies(LOST, SeenEngine(), epochs=2, calls=5)
    application.run(limits)
    assert application.called == 6
    with pytest.raises(MainFailed):
        dies(LOST, SeenEngine(), epochs=1, calls=5).run(limits)


def test_commits_of_another_query_are_not_its_own() -> None:
    engine = SeenEngine()

    def main(application: Application) -> None:
        good, bad = (application.streams.start(name) for name in ("good", "bad"))
        engine.plans("good", good.run, *range(100))
        engine.plans("bad", bad.run, 0)
        bad.die(BUG)
        application.streams.await_any()

    application = Application(main, engine)
    with pytest.raises(MainFailed):
        application.run(LIMITS)
    assert application.called == 3


def test_a_topic_that_a_broker_does_not_know_for_a_moment_is_an_outage_once_the_query_has_run() -> None:
    """Also for the next call, whose query dies before it begins an epoch."""
    engine = SeenEngine()

    def main(application: Application) -> None:
        query = application.streams.start("words")
        if application.called == 1:
            engine.plans("words", query.run, 0, 1, 2)
        if application.called <= 2:
            query.die(NO_TOPIC)
        application.streams.await_any()

    application = Application(main, engine)
    application.run(LIMITS)
    assert application.called == 3
    assert all("something it needs is not available" in line for line in application.said)


def test_a_topic_that_was_never_there_ends_the_program() -> None:
    application = dies(NO_TOPIC, SeenEngine(), epochs=0, calls=5)
    with pytest.raises(MainFailed, match="the topic does not exist: make it"):
        application.run(LIMITS)
    assert application.called == 1


def test_without_a_supervisor_the_error_alone_decides() -> None:
    application = Application(lambda application: _die(application, NO_TOPIC))
    with pytest.raises(MainFailed):
        application.run(LIMITS)
    again = Application(lambda application: _die(application, NO_SEATS) if application.called == 1 else None)
    again.run(LIMITS)
    assert again.called == 2


def _die(application: Application, cause: str, name: str | None = "words") -> None:
    application.streams.start(name).die(cause)
    application.streams.await_any()


def small_or_dies(application: Application) -> None:
    """Runs with as many partitions as the session says, if they fit."""
    if int(application.conf[PARTITIONS]) > 4:
        _die(application, NO_SEATS)


def test_a_query_that_does_not_fit_is_started_with_fewer_instances(capsys: pytest.CaptureFixture[str]) -> None:
    engine = SeenEngine(shape=words(2, 2, 200))
    application = Application(small_or_dies, engine)
    application.run(LIMITS)
    assert (application.called, application.conf[PARTITIONS]) == (2, "1")
    assert engine.smaller == [({"source": 2, "split": 2, "count": 1}, {"source": 2, "split": 1, "count": 1})]
    assert application.said == [
        "a query ended: too few seats for all instances: it needs 204 and 8 are free; counts.Main is called again"
    ]
    assert "words has 204 instances and 8 seats are free: it starts with source 2, split 1" in capsys.readouterr().err


def test_the_partitions_suit_each_query_that_did_not_fit() -> None:
    """All that main starts get the same number: what one needs is not undone for the next."""
    engine = SeenEngine(shape=words(2, 2, 200))

    def main(application: Application) -> None:
        if application.called == 1:
            _die(application, NO_SEATS, "large")
        if application.called == 2:
            engine.shape = words(2, 1, 200)
            _die(application, NO_SEATS, "small")

    application = Application(main, engine)
    application.run(LIMITS)
    assert (application.called, application.conf[PARTITIONS]) == (3, "1")


def test_a_query_that_can_never_fit_ends_the_program_at_once() -> None:
    application = Application(lambda application: _die(application, NO_SEATS), SeenEngine(shape=words(20, 2, 200)))
    with pytest.raises(MainFailed) as failed:
        application.run(LIMITS)
    assert application.called == 1 and application.said == []
    assert str(failed.value).startswith(
        "barograph submit: the query words was not started: it needs 204 seats, one for each instance, and the "
        "application has 8: give the application more executors"
    )


def test_where_executors_may_come_they_are_waited_for_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(first_size, "SETTLED_S", 0.01)
    engine = SeenEngine(shape=words(20, 2, 200), grows=True, comes_up=False)
    application = Application(lambda application: _die(application, NO_SEATS), engine)
    with pytest.raises(MainFailed, match="it needs 204 seats"):
        application.run(RestartLimits(patience_s=0.01))
    assert application.called == 2
    assert application.said[0] == "waiting for seats: 204 instances need one each and 8 are free"


def test_partitions_that_the_application_sets_itself_are_named() -> None:
    def main(application: Application) -> None:
        application.conf[PARTITIONS] = "200"
        _die(application, NO_SEATS)

    application = Application(main, SeenEngine(shape=words(2, 2, 200)))
    with pytest.raises(MainFailed, match="the application itself sets spark"):
        application.run(LIMITS)
    assert application.called == 2


def test_a_query_that_has_committed_keeps_its_size_when_seats_are_lost() -> None:
    engine = SeenEngine(shape=words(2, 2, 200))
    application = dies(NO_SEATS, engine, epochs=2, calls=3)
    application.run(LIMITS)
    assert (application.called, application.conf[PARTITIONS], engine.smaller) == (4, "200", [])


@pytest.mark.parametrize(
    ("name", "topology"), [("words", "words"), ("", "query-6e7b1f0e"), ("two words [id = 7]", "two words [id = 7]")]
)
def test_an_error_names_its_query(name: str, topology: str) -> None:
    wrapped = f"java.lang.RuntimeException: no\nCaused by: {error_of(name, run_id(7), BUG)}"
    assert dead_query(wrapped) == (topology, run_id(7))
    assert dead_query("org.apache.spark.sql.streaming.StreamingQueryException: cut off") == ("", "")
