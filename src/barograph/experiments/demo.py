"""``make demo``: WordCount on three small nodes in three parts, about seven minutes; then a table and a chart.

1. Orders by hand: two moves, a scale and a kill -9 while a load rises and falls. No row is lost or counted twice.
2. The default policy with its defaults under a load that rises fivefold and falls again.
3. The same load under fixed shares that reserve the same CPU in total.

The load of parts 2 and 3 is chosen so that a good scheduler has something to change. A line costs ``split`` 2 ms of
CPU: at 100 lines a second its two instances need 0.1 cores each, at 500 half a core each. A node has 0.6 cores, and the
policy reserves a third more than an instance needs, so two instances suffice up to about 450 lines a second and the
peak needs a third one. In the simulator with the same nodes it comes after 26 s; on Spark it came after 26 s in one run
and after 4 s in another. Whether instances move depends on where the first placement put them. All nodes
together (1.8 cores) are enough for the peak.

The policy lends by default: an instance may use CPU that its node has left. What is compared in part 3 is therefore the
CPU that is reserved, which is what other topologies could not have had; the limits are higher in part 2.
"""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from barograph.model import BadInput
from barograph.report.chart import draw, require_matplotlib
from barograph.report.story import story

CHART = Path("demo.png")
TITLE = "WordCount on three nodes of 0.6 cores"
CLUSTER = ("--nodes", "3", "--node-cpu", "0.6", "--seats", "8")
BY_HAND = (
    "--seconds", "36", "--load", "ramp 0s=300 18s=1500 36s=300", "--epoch", "15s",
    "--at", "8:move count/1=node-1", "--at", "8:move split/0=node-3", "--at", "14:scale split=4",
    "--at", "22:kill executor@node-2",
)  # fmt: skip
WAVE = (
    "--seconds", "75", "--load", "ramp 0s=100 30s=500 45s=500 75s=100", "--busy", "split=2000",
    "--cycle", "2s", "--recovery", "off", "--epoch", "300s", "--format", "json",
)  # fmt: skip
OURS, EQUAL = "adaptive", "fixed-equal"
HEAD = (
    f"{'':<12} {'ms by column':>17} {'ms by record time':>17}\n"
    f"{'policy':<12} {'mean':>9} {'p99':>7} {'mean':>9} {'p99':>7} {'late':>8} {'reserved':>9} {'used':>7} "
    f"{'nodes':>6} {'moves':>6} {'scales':>7}"
)


def main() -> int:
    try:
        require_matplotlib()
    except BadInput as error:
        say(str(error))
        return 2
    say("1. orders by hand: moves, a scale, a kill -9")
    if run(*CLUSTER, *BY_HAND).returncode != 0:
        return 1
    with tempfile.TemporaryDirectory(prefix="barograph-demo-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        say("2. the default policy under a load that rises fivefold and falls again")
        ours = wave(OURS, folder)
        say("3. the same load under fixed shares that reserve the same CPU in total")
        equal = wave(EQUAL, folder, "--like", str(folder / f"{OURS}.json"))
        stories = [story(r["policy"], r, folder / f"history-{r['policy']}", r["start_ms"]) for r in (ours, equal)]
        draw(TITLE, stories, float(ours["seconds"]), CHART)
    table = "\n".join([HEAD, *(line(report) for report in (ours, equal))])
    sys.stdout.write(f"{table}\nthe chart is in {CHART.resolve()}\n")
    return 0


def wave(policy: str, folder: Path, *arguments: str) -> dict[str, Any]:
    """Run the load of parts 2 and 3 under a policy; its report."""
    history = folder / f"history-{policy}"
    done = run(*CLUSTER, *WAVE, "--policy", policy, *arguments, "--history", str(history), capture=True)
    if done.returncode != 0:
        raise SystemExit(f"the run under {policy} ended with code {done.returncode}")
    (folder / f"{policy}.json").write_bytes(done.stdout)
    report: dict[str, Any] = json.loads(done.stdout)
    return report


def run(*arguments: str, capture: bool = False) -> "subprocess.CompletedProcess[bytes]":
    """In a process of its own, as a user starts it: a process can have only one Spark application."""
    say("barograph run wordcount " + " ".join(f"'{a}'" if " " in a else a for a in arguments))
    command = [sys.executable, "-m", "barograph.cli.main", "run", "wordcount", *arguments]
    return subprocess.run(command, stdout=subprocess.PIPE if capture else None, env=dict(os.environ), check=False)


def line(report: dict[str, Any]) -> str:
    due, record, cpu = report["latency_ms"]["due"], report["latency_ms"]["record"], report["cpu_core_s"]
    times = " ".join(f"{found['mean']:>9,.1f} {found['p99']:>7,.0f}" for found in (due, record))
    return (
        f"{report['policy']:<12} {times} {report['rows']['late']:>8,} "
        f"{cpu['reserved']:>9.1f} {cpu['used']:>7.1f} {report['nodes_used']['mean']:>6.1f} {report['moves']:>6} "
        f"{report['rescales']:>7}"
    )


def say(text: str) -> None:
    sys.stderr.write(f"{text}\n")
    sys.stderr.flush()


if __name__ == "__main__":
    sys.exit(main())
