"""What the ports of a process ask for, as far as that can be told without connecting to them."""

import contextlib
from collections.abc import Iterable, Iterator
from pathlib import Path

from barograph.engines.spark.health import Finding
from barograph.engines.spark.security import processes
from barograph.engines.spark.security.broker_listeners import listeners
from barograph.engines.spark.security.driver_uses import DriverUses
from barograph.engines.spark.security.ports import ListeningPort
from barograph.engines.spark.security.processes import OwnProcess

_SHOWN = 5  # of a list that can be long
_WIDE = ("::", "0.0.0.0")
_ALWAYS_LISTEN = (processes.MASTER, processes.WORKER, processes.EXECUTOR, processes.DRIVER)


def port_findings(process: OwnProcess, masters: frozenset[str], told: DriverUses | None = None) -> Iterator[Finding]:
    """masters: URLs of clusters with a secret. told: what the driver says that it uses, where the process is
    its Python or its JVM."""
    if not process.ports:
        if process.role not in _ALWAYS_LISTEN and process.role != processes.PYTHON_OF_EXECUTOR:
            yield Finding(_name(process), True, "listens on no port")
    elif process.role == processes.BROKER:
        yield from _of_broker(process)
    elif process.role in (processes.PYTHON_OF_DRIVER, processes.PYTHON_OF_EXECUTOR):
        yield from _of_python(process, told)
    else:
        yield from _of_spark(process, authenticated(process, masters) or (told is not None and told.secret))


def _name(process: OwnProcess) -> str:
    return f"ports of {process.role} {process.pid}"


def _reach(ports: Iterable[ListeningPort]) -> str:
    return "this machine" if all(p.loopback for p in ports) else "the network"


def _places(ports: Iterable[ListeningPort]) -> str:
    return ", ".join(f"{p.address}:{p.port}" for p in ports)


def authenticated(process: OwnProcess, masters: frozenset[str]) -> bool:
    """Whether its RPC asks for a secret. A driver of one of these masters has one: they let no other in."""
    words = process.words
    if {"spark.authenticate=true", "-Dspark.authenticate=true"} & set(words):
        return True
    if any(word.removeprefix("spark.master=") in masters for word in words):
        return True
    if "--properties-file" in words[:-1]:
        with contextlib.suppress(OSError):
            file = Path(words[words.index("--properties-file") + 1])
            return "spark.authenticate true" in file.read_text(encoding="utf-8").splitlines()
    return False


def _of_spark(process: OwnProcess, secret: bool) -> Iterator[Finding]:
    """Its ports on addresses of its own, and those on every interface, which are the streaming shuffle's."""
    own = [p for p in process.ports if p.address not in _WIDE]
    wide = [p for p in process.ports if p not in own]
    if own:
        how = "with a secret" if secret else "WITHOUT a secret"
        advice = "set spark.authenticate and spark.authenticate.secret, by --properties-file with a file of your own"
        yield Finding(_name(process), secret, f"{_places(own)}: open to {_reach(own)}, {how}", advice)
    if wide:
        shuffle = process.role in (processes.EXECUTOR, processes.DRIVER) and process.guarded
        how = "rows only for readers with a proof" if shuffle else "WITHOUT authentication"
        advice = "load the plug-in (barograph conf), or keep other machines and users away from these ports"
        places = ", ".join(str(p.port) for p in wide[:_SHOWN]) + (" and more" if len(wide) > _SHOWN else "")
        yield Finding(_name(process), shuffle, f"every interface, {len(wide)} ports ({places}): {how}", advice)


def _of_broker(process: OwnProcess) -> Iterator[Finding]:
    try:
        found = listeners(process.words, process.folder)
        # Of two with the same port, on different addresses, the one that asks for less.
        known = {listener.port: listener for listener in sorted(found, key=lambda one: one.asks, reverse=True)}
    except OSError as error:
        advice = "look into the settings of the broker: each of its listeners should ask for a login"
        text = f"{_places(process.ports)}: what it asks for is not known: {error}"
        yield Finding(_name(process), False, text, advice)
        return
    for port in process.ports:
        listener = known.get(port.port)
        asks = "" if listener is None else listener.asks
        what = "not a listener of its settings" if listener is None else f"listener {listener.name}"
        how = f"with {asks}" if asks else "WITHOUT a login"
        advice = "let each listener ask for a login: SASL in listener.security.protocol.map"
        yield Finding(
            _name(process), bool(asks), f"{_places([port])} ({what}): open to {_reach([port])}, {how}", advice
        )


def _of_python(process: OwnProcess, told: DriverUses | None) -> Iterator[Finding]:
    """PySpark's daemon asks for a token. What else a program has opened is its own affair, and is shown."""
    known = {} if told is None else {port.port: port for port in told.python_ports}
    daemon = process.role == processes.PYTHON_OF_EXECUTOR and any(w.startswith("pyspark.") for w in process.words)
    # Each driver has the port for accumulators, and it asks for a token.
    only = told is None and process.role == processes.PYTHON_OF_DRIVER and len(process.ports) == 1
    for port in process.ports:
        text = f"{_places([port])} ({{}}): open to {_reach([port])}, "
        spark = known.get(port.port)
        if spark is not None:
            advice = (
                "Spark opens it for foreachBatch and for listeners in Python, without a token: leave those out where "
                "there are other users"
            )
            how = "with a token" if spark.token else "WITHOUT a token"
            yield Finding(_name(process), spark.token, text.format(f"PySpark's, for {spark.use}") + how, advice)
        elif daemon or only:
            yield Finding(_name(process), True, text.format("PySpark's") + "with a token")
        else:
            advice = "see what the program opened it for, and whether that asks for anything"
            found = text.format("opened by the program") + "it is not known what it asks for"
            yield Finding(_name(process), False, found, advice, essential=False)
