"""Says what a session has otherwise than Barograph wants it, above all which parts of Barograph did not get in: each
once in this process, wherever it is noticed first."""

import sys
from collections.abc import Callable, Iterable

from pyspark.sql import SparkSession

from barograph.engines.spark.conf import plugin_settings
from barograph.submit.settings import EXTENSIONS, left_out

_RULE = plugin_settings()[EXTENSIONS]
_said: set[str] = set()


def say_new(sentences: Iterable[str], say: Callable[[str], object]) -> None:
    say_each_once((f"a part of Barograph did not get in: {sentence}" for sentence in sentences), say)


def say_each_once(sentences: Iterable[str], say: Callable[[str], object]) -> None:
    for sentence in sentences:
        if sentence not in _said:
            _said.add(sentence)
            say(sentence)


def say_left_out_of_session(spark: SparkSession) -> None:
    """By its settings, and by what Spark could load of them."""
    settings = dict(spark.sparkContext.getConf().getAll())
    found = left_out(settings, plugin_settings())
    named = _RULE in [entry.strip() for entry in settings.get(EXTENSIONS, "").split(",")]
    if named and not has_our_rule(spark):
        found.append(
            f"{EXTENSIONS} names {_RULE}, and Spark could not load it, as a warning in its log says: nothing can be "
            "placed, scaled or cut; load one version of barograph-plugin.jar only, made for this Spark"
        )
    say_new(found, lambda text: sys.stderr.write(f"barograph: {text}\n"))


def has_our_rule(spark: SparkSession) -> bool:
    """Spark goes on without an extension that it cannot load."""
    session = spark._jsparkSession
    return _RULE in str(session.extensions().buildColumnarRules(session).toString())
