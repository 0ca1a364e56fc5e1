"""A standalone master that does not take an application is one sentence."""

import pytest
from py4j.protocol import Py4JJavaError
from tests.engines.spark.query.test_query_runs import JavaError

from barograph.engines.spark.session import refusals_told
from barograph.model import BadInput

STOPPED = "java.lang.IllegalStateException: Cannot call methods on a stopped SparkContext."


def start(master: str, error: str) -> None:
    with refusals_told(lambda: master):
        raise JavaError(error)


def test_what_the_user_may_do_is_said() -> None:
    with pytest.raises(BadInput, match=r"did not take the application: .* --properties-file") as told:
        start("spark://there:7077", STOPPED)
    assert str(told.value).startswith("spark://there:7077 ") and "\n" not in str(told.value)


@pytest.mark.parametrize(
    ("master", "error"), [("local[2]", STOPPED), ("spark://there:7077", "java.lang.OutOfMemoryError")]
)
def test_other_errors_stay_what_they_are(master: str, error: str) -> None:
    with pytest.raises(Py4JJavaError, match=error):
        start(master, error)
