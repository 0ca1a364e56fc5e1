"""Errors that say that another driver has the checkpoint end a query with one sentence, and no other errors do."""

import pytest

from barograph.engines.spark.query.failures.diagnosis import (
    Cause,
    GiveUpCode,
    RestartLimits,
    diagnose,
    diagnose_failed_start,
    give_up,
)
from barograph.engines.spark.query.failures.ownership import other_owner

TAKEN = "the checkpoint file:/c was taken over by the application b (app-2) on host, process 7, since then; stop it"
IN_USE = "the checkpoint file:/c is in use by the application a (app-1) on host, process 6, since then: stop that one"


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (
            f"[STREAM_FAILED] Query [id = 1] terminated with exception: {TAKEN} SQLSTATE: XXKST\n"
            f"Caused by: org.apache.spark.barograph.lease.LeaseLost: {TAKEN}",
            TAKEN,
        ),
        (f"[STREAM_FAILED] Query [id = 1] terminated with exception: {TAKEN} SQLSTATE: XXKST", TAKEN),
        (IN_USE, IN_USE),
        (
            "[CONCURRENT_STREAM_LOG_UPDATE] Concurrent update to the log. Multiple streaming jobs detected for 5.",
            "another query writes to the same checkpoint, one without a lease: stop it, or use another checkpoint",
        ),
        ("java.io.IOException: No space left on device", ""),
        ("Job aborted due to stage failure: lease", ""),
    ],
)
def test_the_sentence_is_found(text: str, sentence: str) -> None:
    assert other_owner(text) == sentence


def test_a_query_whose_checkpoint_has_another_owner_is_not_restarted() -> None:
    for death in (
        diagnose(f"Caused by: org.apache.spark.barograph.lease.LeaseLost: {TAKEN}", 1.0, 3, ["executor 1"]),
        diagnose_failed_start(RuntimeError(TAKEN), 1.0),
        diagnose("[CONCURRENT_STREAM_LOG_UPDATE] Concurrent update", 1.0, 3, []),
    ):
        assert death.cause is Cause.OWNER
        given_up = give_up([death], RestartLimits())
        assert given_up is not None and given_up.code is GiveUpCode.OTHER_OWNER and not given_up.is_bug
