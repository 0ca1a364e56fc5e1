"""Look whether this machine has what Barograph needs: each line is ok, or says what to do.

Exit code 0 when everything essential is there, 1 when not.
"""

import argparse
import json
from dataclasses import asdict


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--format", choices=("text", "json"), default="text")


def run(args: argparse.Namespace) -> int:
    from barograph.engines.spark.health import examine

    findings = examine()
    if args.format == "json":
        print(json.dumps([asdict(f) for f in findings], indent=2))
    else:
        for f in findings:
            mark = "ok     " if f.ok else "MISSING" if f.essential else "warning"
            print(f"{mark} {f.name:<15} {f.found}" + ("" if f.ok else f"\n{'':<23} -> {f.advice}"))
    return 0 if all(f.ok for f in findings if f.essential) else 1
