"""A cluster that outlives the command that starts it: a process of its own owns it until it is told to end.

``up`` starts that process and waits for its answer; ``down`` tells it to end. The process (``python -m ...``) starts
the cluster, writes the result to its standard output, and from then on only restarts nodes that died. Its log is then
``logs/owner.log`` in the cluster's folder.
"""

import json
import logging
import os
import signal
import subprocess
import sys
import time
import warnings
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path

from barograph.engines.spark.cluster import runs
from barograph.engines.spark.cluster.embedded import start_cluster
from barograph.engines.spark.cluster.java import find_java
from barograph.engines.spark.cluster.launch import log_of
from barograph.engines.spark.cluster.node_keeper import HUNG_AFTER_S, NodeKeeper
from barograph.engines.spark.cluster.processes import python_environment, send, wait_gone
from barograph.engines.spark.cluster.runs import Run
from barograph.engines.spark.cluster.settings import ClusterSettings, require_free_port
from barograph.engines.spark.cluster.start_signs import StartFailed
from barograph.logs import set_up
from barograph.model import BadInput

_END_S = 15.0
_FIRST_NAME = "cluster"
OWNER = "owner"  # the name of its log
log = logging.getLogger("barograph.engines.spark.cluster.detached")  # not __name__, which is __main__ in its process


def up(settings: ClusterSettings, name: str | None = None, hung_after_s: float | None = HUNG_AFTER_S) -> Run:
    """Start a cluster that outlives this process. Raises BadInput or StartFailed like ``start_cluster``. hung_after_s:
    of its keeper."""
    find_java()
    require_free_port(settings.port)
    chosen = _FIRST_NAME if name is None else name
    given = (json.dumps(asdict(settings)), chosen, json.dumps(hung_after_s))
    owner = subprocess.Popen(
        [sys.executable, "-m", "barograph.engines.spark.cluster.detached", *given],
        env=python_environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd="/",
        start_new_session=True,
    )
    assert owner.stdout is not None and owner.stderr is not None
    try:
        with owner.stdout, owner.stderr:  # it closes both after its answer, and goes on
            said, complaints = owner.stdout.read(), owner.stderr.read()
    except BaseException:
        owner.terminate()
        owner.wait()
        raise
    try:
        word = json.loads(said)
    except ValueError:
        raise StartFailed(f"the cluster's process ended:\n{complaints.decode(errors='replace')}") from None
    if word["what"] == "bad input":
        raise BadInput(word["text"])
    run = runs.read(Path(word["text"]))
    if word["what"] != "up" or run is None:
        raise StartFailed(word["text"])
    return run


def down(name: str | None = None) -> tuple[str, ...]:
    """End the named cluster, or the only one, and clear leftovers. Returns the names of what was ended."""
    cleared = runs.sweep()
    alive = {run.name: run for run in runs.all_runs() if run.detached}
    if name is None and len(alive) > 1:
        raise BadInput(f"there are several clusters ({', '.join(alive)}): name one, as in barograph cluster down NAME")
    if name is not None and name not in alive:
        if name in cleared:
            return cleared
        raise BadInput(f"there is no cluster named {name}" + (f"; there are {', '.join(alive)}" if alive else ""))
    ended = []
    for run in [alive[name]] if name is not None else alive.values():
        if run.owned:
            send(run.owner, signal.SIGTERM)
            wait_gone(run.owner, _END_S)
            send(run.owner, signal.SIGKILL)
        _await_cleared(run)
        ended.append(run.name)
    return (*cleared, *ended)


def _await_cleared(run: Run) -> None:
    """The owner cleans up, or its watchdog does; if neither does so in time, it is done here."""
    deadline = time.monotonic() + _END_S
    while time.monotonic() < deadline:
        now = runs.read(run.folder)
        if now is None or now.run_id != run.run_id:
            return
        if not now.owned and not now.guarded:
            break
        time.sleep(0.05)
    runs.clear(run)


def _own(raw_settings: str, name: str, hung_after: str) -> int:
    """The main function of the owning process."""
    # Set before the start, so that SIGTERM also ends a half-started cluster.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    warnings.simplefilter("ignore", RuntimeWarning)  # ``up`` reads the reason from the record
    try:
        cluster = start_cluster(ClusterSettings(**json.loads(raw_settings)), name, detached=True)
    except BadInput as error:
        return _say("bad input", str(error), 2)
    except StartFailed as error:
        return _say("failed", str(error), 1)
    with cluster, ExitStack() as ending:
        cluster.fence()
        ending.callback(NodeKeeper(cluster, json.loads(hung_after)).close)
        _say("up", str(cluster.run.folder), 0)
        # From here on no process reads the two pipes.
        os.dup2(os.open(os.devnull, os.O_RDWR), 1)
        os.dup2(os.open(log_of(cluster.run, OWNER), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), 2)
        log.info("%s is up with %d nodes at %s", cluster.run.name, cluster.settings.nodes, cluster.run.master)
        while True:
            signal.pause()


def _say(what: str, text: str, code: int) -> int:
    sys.stdout.write(json.dumps({"what": what, "text": text}))
    sys.stdout.flush()
    return code


if __name__ == "__main__":
    set_up("info")
    sys.exit(_own(*sys.argv[1:]))
