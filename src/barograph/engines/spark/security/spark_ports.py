"""What the ports of Spark's own processes ask for: of masters, workers, executors and drivers.

A driver with Barograph's Python says which port is what. Of every other process only the number of its ports and its
settings are known: what these do not explain is not known, and never taken for closed.
"""

import contextlib
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

from barograph.config.written.properties import properties_of
from barograph.engines.spark.health import Finding
from barograph.engines.spark.security import processes
from barograph.engines.spark.security.driver_uses import BLOCKS, JAVA_GATEWAY, RPC, WEB_PAGE, DriverUses
from barograph.engines.spark.security.port_texts import name_of, opened_by_program, places, reach, wide_places
from barograph.engines.spark.security.ports import ListeningPort, chosen_by_system
from barograph.engines.spark.security.processes import OwnProcess
from barograph.model import BadInput

_WIDE = ("::", "0.0.0.0")
_SECRET = "set spark.authenticate and spark.authenticate.secret, by --properties-file with a file of your own"
_PAGES = "set spark.ui.filters to a filter that asks for something, as org.apache.spark.ui.JWSFilter does"
_PLUGIN = "load the plug-in (barograph conf), or keep other machines and users away from these ports"
_UNKNOWN = (
    "start the driver with barograph submit or barograph.start, so that it says what its ports are, and set "
    "spark.ui.enabled=false; or keep other machines and users away from these ports"
)
_UNKNOWN_OF_EXECUTOR = "see what opened them, such as JMX or an agent of Java, and whether that asks for anything"
# use of a port of a driver -> what it lacks where it asks for nothing, and what to do
_LACKS = {
    RPC: ("a secret", _SECRET),
    BLOCKS: ("a secret", _SECRET),
    WEB_PAGE: ("a filter", f"set spark.ui.enabled=false, or {_PAGES}"),
    JAVA_GATEWAY: ("a token", "start the driver with an unchanged PySpark, whose gateway asks for a token"),
}


def spark_findings(process: OwnProcess, masters: frozenset[str], told: DriverUses | None) -> Iterator[Finding]:
    """masters and told: as for ``port_findings``."""
    settings = _settings(process)
    if process.role in (processes.MASTER, processes.WORKER):
        yield _of_daemon(process, settings)
    elif told is not None and process.role == processes.DRIVER:
        yield from _of_told_driver(process, told)
    else:
        own = [p for p in process.ports if p.address not in _WIDE]
        wide = [p for p in process.ports if p.address in _WIDE]
        secret = _is_true(settings) or settings.get("spark.master") in masters
        if own:
            yield _on_addresses(process, own, secret)
        if wide:
            yield _on_every_interface(process, wide, secret, blocks_too=not own)


def _settings(process: OwnProcess) -> dict[str, str]:
    """Of its command line, which wins, and of the file that is named there."""
    words, found = process.words, {}
    if "--properties-file" in words[:-1]:
        with contextlib.suppress(BadInput):
            found = properties_of(process.folder / Path(words[words.index("--properties-file") + 1]))
    given = (word.removeprefix("-D").partition("=") for word in words)
    found |= {key: value for key, _, value in given if key.startswith("spark.")}
    if process.role == processes.DRIVER and "--master" in words[:-1]:
        found["spark.master"] = words[words.index("--master") + 1]
    return found


def _is_true(settings: dict[str, str]) -> bool:
    return settings.get("spark.authenticate", "").strip().lower() == "true"


def _of_daemon(process: OwnProcess, settings: dict[str, str]) -> Finding:
    """Its RPC, and its web page, which Spark cannot switch off."""
    secret, filtered = _is_true(settings), bool(settings.get("spark.ui.filters", "").strip())
    if secret:
        how = "with a secret" if filtered else "with a secret, but its web page WITHOUT a filter"
    else:
        how = "WITHOUT a secret"
    text = f"{places(process.ports)}: open to {reach(process.ports)}, {how}"
    return Finding(name_of(process), secret and filtered, text, _PAGES if secret else _SECRET)


def _of_told_driver(process: OwnProcess, told: DriverUses) -> Iterator[Finding]:
    known, rest = {port.port: port for port in told.jvm_ports}, []
    for port in process.ports:
        spark = known.get(port.port)
        if spark is None:
            rest.append(port)
            continue
        lacks, advice = _LACKS.get(spark.use, ("authentication", _SECRET))
        how = f"with {spark.asks}" if spark.asks else f"WITHOUT {lacks}"
        text = f"{places([port])} ({spark.use}): open to {reach([port])}, {how}"
        yield Finding(name_of(process), bool(spark.asks), text, advice)
    shuffle = [p for p in rest if p.address in _WIDE and chosen_by_system(p.port)]
    if shuffle:
        yield _of_shuffle(process, shuffle)
    yield from (opened_by_program(process, port) for port in rest if port not in shuffle)


def _on_addresses(process: OwnProcess, ports: list[ListeningPort], secret: bool) -> Finding:
    """Of a process that was not asked."""
    at = f"{places(ports)}: open to {reach(ports)}"
    if not secret:
        return Finding(name_of(process), False, f"{at}, WITHOUT a secret", _SECRET)
    if len(ports) > _most(process):
        return _not_known(process, f"{at}, more than Spark needs")
    return Finding(name_of(process), True, f"{at}, with a secret", _SECRET)


def _most(process: OwnProcess) -> int:
    """How many ports Spark itself opens in it that ask for a secret or a token."""
    if process.role != processes.DRIVER:
        return 1 if process.role == processes.EXECUTOR else 0  # block transfer
    words = process.words
    python = any(w == "pyspark-shell" or (w.endswith(".py") and b != "--py-files") for b, w in pairwise(("", *words)))
    return 2 + python + (processes.DRIVER_WRAPPER in words)  # RPC, block transfer; Java gateway; RPC of the wrapper


def _on_every_interface(process: OwnProcess, ports: list[ListeningPort], secret: bool, blocks_too: bool) -> Finding:
    """Of a process that was not asked. blocks_too: its ports are all here, block transfer among them."""
    if process.role == processes.EXECUTOR:
        if not process.guarded:
            return _of_shuffle(process, ports)
        if blocks_too and not secret:
            text = f"{wide_places(ports)}: block transfer among them WITHOUT a secret"
            return Finding(name_of(process), False, text, _SECRET)
        # Each writer of the shuffle lets the system choose its port.
        if sum(not chosen_by_system(p.port) for p in ports) <= blocks_too:
            return _of_shuffle(process, ports)
    return _not_known(process, wide_places(ports))


def _of_shuffle(process: OwnProcess, ports: list[ListeningPort]) -> Finding:
    how = "rows only for readers with a proof" if process.guarded else "WITHOUT authentication"
    return Finding(name_of(process), process.guarded, f"{wide_places(ports)}: {how}", _PLUGIN)


def _not_known(process: OwnProcess, where: str) -> Finding:
    advice = _UNKNOWN_OF_EXECUTOR if process.role == processes.EXECUTOR else _UNKNOWN
    return Finding(name_of(process), False, f"{where}: it is not known what each of them asks for", advice)
