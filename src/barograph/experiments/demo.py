"""``make demo``: three small nodes and WordCount in three acts, about five minutes; then a table and a picture.

1. Hands and eyes: two moves, a rescale and a kill -9 while a load rises and falls; no row is lost, none counted twice.
2. The default policy rides a load that rises fivefold and falls again. It does not lend, so that what is reserved
   is all it can use, as in the third act.
3. The same load under fixed shares of the same CPU in total.
"""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from barograph.experiments.picture import draw
from barograph.experiments.story import story

PICTURE = Path("demo.png")
CLUSTER = ("--nodes", "3", "--node-cpu", "0.6", "--seats", "8")
HANDS = (
    "--seconds", "36", "--load", "ramp 0s=300 18s=1500 36s=300", "--epoch", "15s",
    "--at", "8:move count/1=node-1", "--at", "8:move split/0=node-3", "--at", "14:scale split=4",
    "--at", "22:kill executor@node-2",
)  # fmt: skip
RIDE = (
    "--seconds", "60", "--load", "ramp 0s=240 25s=1200 35s=1200 60s=240", "--toil", "split=300,count=40",
    "--cycle", "2s", "--recovery", "off", "--epoch", "300s", "--format", "json",
)  # fmt: skip
ADAPTIVE = ("--policy", "adaptive", "--option", "lend=false", "--theta", "2")
HEAD = f"{'policy':<12} {'mean ms':>9} {'p99 ms':>9} {'late':>8} {'reserved':>9} {'used':>7} {'nodes':>6} {'moves':>6}"


def main() -> int:
    say("1. hands and eyes: moves, a rescale, a kill -9")
    if run(*CLUSTER, *HANDS).returncode != 0:
        return 1
    with tempfile.TemporaryDirectory(prefix="barograph-demo-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        say("2. the default policy rides a load that rises fivefold and falls again")
        ours = ride("adaptive", folder, ADAPTIVE)
        say("3. the same load under fixed shares of equal CPU")
        equal = ride("fixed-equal", folder, ("--policy", "fixed-equal", "--like", str(folder / "adaptive.json")))
        stories = [story(f"{r['policy']}", r, folder / f"history-{r['policy']}", r["start_ms"]) for r in (ours, equal)]
        draw(stories, float(ours["seconds"]), PICTURE)
    table = "\n".join([HEAD, *(line(report) for report in (ours, equal))])
    sys.stdout.write(f"{table}\nthe picture is in {PICTURE.resolve()}\n")
    return 0


def ride(policy: str, folder: Path, arguments: tuple[str, ...]) -> dict[str, Any]:
    done = run(*CLUSTER, *RIDE, *arguments, "--history", str(folder / f"history-{policy}"), capture=True)
    if done.returncode != 0:
        raise SystemExit(f"the run under {policy} ended with code {done.returncode}")
    (folder / f"{policy}.json").write_bytes(done.stdout)
    report: dict[str, Any] = json.loads(done.stdout)
    return report


def run(*arguments: str, capture: bool = False) -> "subprocess.CompletedProcess[bytes]":
    """A process of its own, as a user starts it: one has one Spark application."""
    say("barograph run wordcount " + " ".join(f"'{a}'" if " " in a else a for a in arguments))
    command = [sys.executable, "-m", "barograph.cli.main", "run", "wordcount", *arguments]
    return subprocess.run(command, stdout=subprocess.PIPE if capture else None, env=dict(os.environ), check=False)


def line(report: dict[str, Any]) -> str:
    due, cpu = report["latency_ms"]["due"], report["cpu_core_s"]
    return (
        f"{report['policy']:<12} {due['mean']:>9,.1f} {due['p99']:>9,.0f} {report['rows']['late']:>8,} "
        f"{cpu['reserved']:>9.1f} {cpu['used']:>7.1f} {report['nodes_used']['mean']:>6.1f} {report['moves']:>6}"
    )


def say(text: str) -> None:
    sys.stderr.write(f"{text}\n")
    sys.stderr.flush()


if __name__ == "__main__":
    sys.exit(main())
