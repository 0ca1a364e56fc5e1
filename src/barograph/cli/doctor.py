"""Check whether this machine has what Barograph needs, and what is open to whom: each line is ok, or says what to do.

It lists the ports of this user's Spark, Python and Kafka processes, with or without a secret, checkpoints, histories
and other files that other users can read, and who may change CPU limits. Exit code 0 when everything essential was
found and nothing is open, 1 when not.
"""

import argparse
import json
from dataclasses import asdict

from barograph.cli.support.tables import table


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--format", choices=("text", "json"), default="text", help="(default %(default)s)")
    parser.add_argument("--json", dest="format", action="store_const", const="json", help="short for --format json")


def run(args: argparse.Namespace) -> int:
    from barograph.engines.spark.health import examine
    from barograph.engines.spark.security.exposure import exposed

    needed, exposures = examine(), exposed()
    findings = [*needed, *exposures]
    if args.format == "json":
        print(json.dumps([asdict(f) for f in findings], indent=2))
    else:
        rows = []
        for f in findings:
            lacking = "OPEN" if f in exposures else "MISSING" if f.essential else "warning"
            rows.append(["ok" if f.ok else lacking, f.name, f.found])
            rows += [] if f.ok else [["", "", f"-> {f.advice}"]]
        print("\n".join(table(rows)))
    return 0 if all(f.ok for f in findings if f.essential) else 1
