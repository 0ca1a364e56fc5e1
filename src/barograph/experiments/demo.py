"""``make demo``: three small nodes, WordCount under a load that rises and falls, two moves, a scale, a kill -9."""

import sys

from barograph.cli.main import main

ARGUMENTS = [
    "run", "wordcount", "--nodes", "3", "--node-cpu", "0.6", "--seats", "8", "--seconds", "60",
    "--load", "ramp 0s=300 20s=1500 40s=300",
    "--at", "15:move count/1=node-1", "--at", "15:move split/0=node-3", "--at", "25:scale split=4",
    "--at", "40:kill executor@node-2", "--epoch", "20s",
]  # fmt: skip

if __name__ == "__main__":
    sys.stderr.write("barograph " + " ".join(f"'{a}'" if " " in a else a for a in ARGUMENTS) + "\n")
    sys.exit(main(ARGUMENTS))
