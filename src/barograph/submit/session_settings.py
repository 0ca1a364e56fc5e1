"""Adds Barograph's settings to the session that a program makes, at the last moment before Spark's context is made.

There the settings of all sources are known: of the command line, of files, and of the program's own builder.
"""

import functools
from collections.abc import Callable, Mapping
from typing import Any

from pyspark import SparkContext
from pyspark.sql import SparkSession

from barograph.engines.spark.cluster.embedded import EmbeddedCluster
from barograph.engines.spark.cluster.java import find_java
from barograph.engines.spark.cluster.runs import run_of
from barograph.engines.spark.conf import without_local_files
from barograph.engines.spark.local_seats import LOCAL, is_local, own_cores, roomy_master, told
from barograph.engines.spark.security.callbacks import guard_callbacks
from barograph.engines.spark.security.closed_driver import (
    CLOSED_LOCAL,
    closing_local,
    left_open,
    not_taken,
    not_up_to_them,
)
from barograph.engines.spark.security.secret import read_secret
from barograph.engines.spark.session import refusals_told
from barograph.submit.connect import refuse_connect
from barograph.submit.hooks import say_each_once, say_new
from barograph.submit.settings import added, left_out


def add_to_sessions(ours: Mapping[str, str], started_for_it: str, say: Callable[[str], None]) -> None:
    """started_for_it: the master of the cluster that was started for this program; empty if there is none."""
    guard_callbacks()
    initialize = SparkContext._initialize_context
    get_or_create = SparkSession.Builder.getOrCreate
    reached: list[str] = []

    @functools.wraps(initialize)
    def with_ours(self: SparkContext, jconf: Any) -> Any:
        for key, value in settings_to_add(dict(self._conf.getAll()), ours, started_for_it, say).items():
            self._conf.set(key, value)
        reached.append(self._conf.get("spark.master", "") or "")
        say_new(left_out(dict(self._conf.getAll()), ours), say)
        return initialize(self, jconf)

    @functools.wraps(get_or_create)
    def classic(self: SparkSession.Builder) -> SparkSession:
        refuse_connect({str(key): str(value) for key, value in self._options.items()})
        with refusals_told(lambda: reached[-1] if reached else ""):
            return get_or_create(self)

    SparkContext._initialize_context = with_ours  # type: ignore[method-assign]
    SparkSession.Builder.getOrCreate = classic  # type: ignore[method-assign]


def settings_to_add(
    theirs: Mapping[str, str], ours: Mapping[str, str], started_for_it: str, say: Callable[[str], None]
) -> dict[str, str]:
    """What a session with the settings ``theirs`` needs besides, on the master that it names."""
    master, more = theirs.get("spark.master", ""), {}
    if started_for_it and master != started_for_it:
        say(f"the program sets its own master, {master}: the cluster that was started for it is not used")
    if master == LOCAL:
        master = roomy_master(own_cores())
        more = {"spark.master": master}
        say(f"{LOCAL} is taken as {told(own_cores())}: write local[N] for another number")
    of_cluster = cluster_settings(master)
    held = not_up_to_them(of_cluster)
    say_each_once([*not_taken(theirs, held), *left_open({**theirs, **held}, of_cluster)], say)
    return {**needed(theirs, {**ours, **of_cluster}, master, say), **held, **more}


def needed(
    theirs: Mapping[str, str], ours: Mapping[str, str], master: str, say: Callable[[str], object]
) -> dict[str, str]:
    """What a session with the settings ``theirs`` needs besides on any master, by whichever way it is made."""
    found = added(theirs, settings_for(ours, master))
    if not is_local(master):
        return found
    say_each_once(left_open(theirs, CLOSED_LOCAL), say)
    return {**found, **closing_local(theirs)}


def settings_for(ours: Mapping[str, str], master: str) -> dict[str, str]:
    """On YARN the application's master reads Hadoop's settings too, and has no jar of ours."""
    return without_local_files(ours) if master.startswith("yarn") else dict(ours)


def cluster_settings(master: str) -> dict[str, str]:
    """Of an embedded cluster of this user: its secret, and executors as it has room for them. Empty for any other."""
    run = run_of(master)
    if run is None:
        return {}
    return {**EmbeddedCluster(run, find_java()).session_conf(), **read_secret(run.folder)}
