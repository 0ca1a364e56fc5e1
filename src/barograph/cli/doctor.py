"""Check whether this machine has what Barograph needs: each line is ok, or says what to do.

Exit code 0 when everything essential was found, 1 when not.
"""

import argparse
import json
from dataclasses import asdict

from barograph.cli.support.tables import table


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--format", choices=("text", "json"), default="text", help="(default %(default)s)")


def run(args: argparse.Namespace) -> int:
    from barograph.engines.spark.health import examine

    findings = examine()
    if args.format == "json":
        print(json.dumps([asdict(f) for f in findings], indent=2))
    else:
        rows = []
        for f in findings:
            rows.append(["ok" if f.ok else "MISSING" if f.essential else "warning", f.name, f.found])
            rows += [] if f.ok else [["", "", f"-> {f.advice}"]]
        print("\n".join(table(rows)))
    return 0 if all(f.ok for f in findings if f.essential) else 1
