"""List what was observed, decided and done, cycle by cycle.

    barograph history DIR                          cycles that changed something, and gaps
    barograph history DIR --all --last 20          the last twenty entries
    barograph history DIR --format json            one object for each entry, all columns but the whole cycle
    barograph history DIR --sql "select at_s, about, code, why from reasons where code = 'rolled-back'"

A history may be read while it is being written. "in" is the rate at which rows arrive at the sources of all topologies.
--sql starts Spark on this machine and takes one query; any other statement is refused, so nothing is changed. Its views
are cycles (all columns), and operators, topologies, errors, moves, rescales, reasons and refused (a row for each
element, with number, wall_ms and at_s of its cycle). docs/history.md lists the columns.
"""

import argparse
import contextlib
import json
import logging
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from barograph.history.files import parts, require_format
from barograph.history.places import HistoryPath, place_of
from barograph.history.read import SUMMARY, entries, require_history, rows
from barograph.model import BadInput
from barograph.model.checks import require

if TYPE_CHECKING:  # Spark is imported only for --sql
    from pyspark.sql import SparkSession

log = logging.getLogger(__name__)

VIEWS = ("operators", "topologies", "errors", "moves", "rescales", "reasons", "refused")


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("folder", metavar="DIR", help="the folder, or address, given to run --history")
    parser.add_argument("--sql", metavar="QUERY", help="run this Spark SQL query instead of listing entries")
    parser.add_argument("--all", action="store_true", help="also list cycles that changed nothing")
    parser.add_argument("--last", metavar="N", help="list only the last N entries")
    parser.add_argument("--format", default="table", metavar="json|table", help="(default %(default)s)")


def run(args: argparse.Namespace) -> int:
    require(args.format in ("json", "table"), f"--format must be json or table, not {args.format!r}")
    require(args.last is None or args.last.isdecimal(), f"--last must be a whole number, not {args.last!r}")
    folder = place_of(args.folder)
    require_history(folder)
    if args.sql is not None:
        for part in parts(folder):
            with contextlib.suppress(FileNotFoundError):  # merged with others meanwhile
                require_format(part)
        return _answer(folder, args.sql, args.format)
    found = [r for r in rows(folder, SUMMARY) if args.all or args.format == "json" or _notable(r)]
    sources = _Sources(folder)
    for row in found[-int(args.last) :] if args.last is not None and int(args.last) else found:
        if args.format == "json":
            print(json.dumps({**row, "reasons": [_with_numbers(r) for r in row["reasons"] or ()]}))
        else:
            print(_line(row, sources.arrived(row)))
    return 0


def _notable(row: dict[str, Any]) -> bool:
    return bool(row["kind"] == "gap" or row["changed"] or row["refused"])


def _with_numbers(reason: dict[str, Any]) -> dict[str, Any]:
    return {**reason, "numbers": dict(reason["numbers"] or ())}


class _Sources:
    """Which operators of a history are sources. The summary of an entry does not say it, its whole cycle does.

    A whole cycle is read only when an entry has other operators than those before.
    """

    def __init__(self, folder: HistoryPath) -> None:
        self._folder = folder
        self._known: dict[frozenset[tuple[str, str]], frozenset[tuple[str, str]]] = {}

    def arrived(self, row: dict[str, Any]) -> float | None:
        """Rows that arrived at the sources of all topologies; None for a gap, and where the cycle is gone."""
        if row["kind"] == "gap":
            return None
        operators = {(o["topology"], o["operator"]): float(o["arrived"]) for o in row["operators"]}
        names = frozenset(operators)
        if names not in self._known:
            entry = next(entries(self._folder, after=row["number"] - 1), None)
            if entry is None or entry.number != row["number"] or entry.cycle is None:
                return None
            topologies = entry.cycle.snapshot.topologies
            self._known[names] = frozenset((t.name, o.name) for t in topologies for o in t.operators if o.source)
        return sum(operators[name] for name in self._known[names])


def _line(row: dict[str, Any], arrived: float | None) -> str:
    when = datetime.fromtimestamp(row["wall_ms"] / 1000.0, UTC).strftime("%Y-%m-%d %H:%M:%S")
    head = f"{row['number']:>7}  {when}"
    if row["kind"] == "gap":
        return f"{head}  --- {row['gap_why']} for {row['gap_s']:.1f} s ---"
    rate = "-" if arrived is None else f"{arrived / row['cycle_s']:,.0f}"
    done = [f"scale {r['topology']}/{r['operator']} {r['before']}->{r['after']}" for r in row["rescales"]]
    moved = [m for m in row["moves"] if m["source"] is not None]
    done += [f"{len(moved)} moves"] if moved else []
    done += [f"{len(row['moves']) - len(moved)} placed"] if len(row["moves"]) > len(moved) else []
    done += [f"cut {', '.join(row['cuts'])}"] if row["cuts"] and not done else []
    done += [f"REFUSED {r['what']}: {r['reason']}" for r in row["refused"] or ()]
    if row["done"] is None:
        done = [f"advises: {d}" for d in done]
    pause = f"  ({row['order_to_commit_s']:.2f} s)" if row["order_to_commit_s"] is not None else ""
    return (
        f"{head}  at {row['at_s']:>8.1f} s  {row['policy']:<10} in {rate:>9}/s  "
        f"p99 ms {_worst(row, 'p99_ms'):>7} by column {_worst(row, 'record_p99_ms'):>7} by record time  "
        f"cpu {row['cpu_allotted_pct']:>5.0f} %  {'; '.join(done) or '-'}{pause}"
    )


def _worst(row: dict[str, Any], latency: str) -> str:
    """Of all topologies."""
    known = [t[latency] for t in row["topologies"] if t[latency] is not None]
    return f"{max(known):,.0f}" if known else "-"


@contextlib.contextmanager
def still(folder: HistoryPath) -> Iterator[Path]:
    """A folder of links to the files of the history as it is now, so that none vanishes while Spark reads it."""
    with tempfile.TemporaryDirectory(prefix="barograph-history-") as inside:
        view = Path(inside)
        known: set[int] = set()
        for _ in range(10):  # the writer may merge files meanwhile; then we look again
            try:
                for part in parts(folder):
                    numbers = set(range(part.first, part.last + 1))
                    if not numbers <= known:
                        _drop_covered(view, numbers)
                        _same(part.path, view / part.path.name)
                        known |= numbers
                break
            except FileNotFoundError:
                continue
        else:
            log.warning("the files of %s changed all the time; the newest entries may be missing", folder)
        yield view


def _same(source: HistoryPath, target: Path) -> None:
    """A hard link to the file, or a copy if it is on another disk or machine."""
    if not isinstance(source, Path):
        target.write_bytes(source.read())
        return
    try:
        os.link(source, target)
    except FileNotFoundError:
        raise
    except OSError:
        shutil.copyfile(source, target)


def _drop_covered(view: Path, numbers: set[int]) -> None:
    for part in parts(view):
        if set(range(part.first, part.last + 1)) <= numbers:
            part.path.unlink()


def _answer(folder: HistoryPath, query: str, form: str) -> int:
    from barograph.engines.spark.log_folder import SPARK, end_of, new_log_folder

    logs = new_log_folder("history")
    print(f"-- Spark's own output is in {logs / SPARK}", file=sys.stderr, flush=True)
    try:
        with opened(folder, logs) as spark:
            show_answer(spark, query, form)
    except BadInput:
        raise
    except Exception:
        print(end_of(logs), file=sys.stderr, end="")
        raise
    return 0


@contextlib.contextmanager
def opened(folder: HistoryPath, logs: Path) -> Iterator["SparkSession"]:
    """A Spark session with the views of the history."""
    from pyspark.sql import SparkSession

    from barograph.engines.spark.log_folder import SPARK
    from barograph.engines.spark.session import quiet_local

    with quiet_local("barograph history", logs / SPARK) as spark, still(folder) as view:
        assert isinstance(spark, SparkSession)
        _views(spark, view)
        _without_calls(spark)
        yield spark


def show_answer(spark: "SparkSession", query: str, form: str) -> None:
    from pyspark.errors import AnalysisException, ParseException

    try:
        found = spark.sql(as_query(query))
        if form == "table":
            found.show(1000, truncate=False)
        else:
            for row in found.toLocalIterator():
                print(json.dumps(row.asDict(recursive=True), default=str))
    except ParseException as error:
        what = "--sql takes one query and no other statement, for example select * from reasons"
        raise BadInput(f"{what}: {str(error).splitlines()[0]}") from None
    except AnalysisException as error:
        raise BadInput(f"--sql: {str(error).splitlines()[0]}") from None


def as_query(text: str) -> str:
    """The text as a subquery. Spark's grammar allows no statement there that changes anything, and only one query."""
    return f"select * from (\n{text.strip().removesuffix(';')}\n)"


def _without_calls(spark: "SparkSession") -> None:
    """Remove the functions of SQL that call any Java method, since such a call may write."""
    registry = spark._jsparkSession.sessionState().functionRegistry()
    found = registry.listFunction()
    for function in [found.apply(i) for i in range(found.length())]:
        if function.funcName() in ("reflect", "java_method", "try_reflect"):
            registry.dropFunction(function)


def _views(spark: "SparkSession", folder: HistoryPath) -> None:
    spark.read.parquet(*(str(p.path) for p in parts(folder))).createOrReplaceTempView("cycles")
    for name in VIEWS:
        spark.sql(f"select number, wall_ms, at_s, inline({name}) from cycles").createOrReplaceTempView(name)
