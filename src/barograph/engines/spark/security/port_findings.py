"""What the ports of a process ask for, as far as that can be told without connecting to them."""

from collections.abc import Iterator

from barograph.engines.spark.health import Finding
from barograph.engines.spark.security import processes
from barograph.engines.spark.security.broker_listeners import listeners
from barograph.engines.spark.security.driver_uses import DriverUses
from barograph.engines.spark.security.port_texts import name_of, opened_by_program, places, reach
from barograph.engines.spark.security.processes import OwnProcess
from barograph.engines.spark.security.spark_ports import spark_findings

_ALWAYS_LISTEN = (processes.MASTER, processes.WORKER, processes.EXECUTOR, processes.DRIVER)


def port_findings(process: OwnProcess, masters: frozenset[str], told: DriverUses | None = None) -> Iterator[Finding]:
    """masters: URLs of clusters with a secret. told: what the process says that it uses, where it is a driver."""
    if not process.ports:
        if process.role in _ALWAYS_LISTEN:
            advice = "look again if it has just begun or is ending; else run the doctor where it runs, as its owner"
            text = "its ports are not known: it must listen somewhere, and none is seen"
            yield Finding(name_of(process), False, text, advice)
        elif process.role != processes.PYTHON_OF_EXECUTOR:
            yield Finding(name_of(process), True, "listens on no port")
    elif process.role == processes.BROKER:
        yield from _of_broker(process)
    elif process.role in (processes.PYTHON_OF_DRIVER, processes.PYTHON_OF_EXECUTOR):
        yield from _of_python(process, told)
    else:
        yield from spark_findings(process, masters, told)


def _of_broker(process: OwnProcess) -> Iterator[Finding]:
    try:
        found = listeners(process.words, process.folder)
        # Of two with the same port, on different addresses, the one that asks for less.
        known = {listener.port: listener for listener in sorted(found, key=lambda one: one.asks, reverse=True)}
    except OSError as error:
        advice = "look into the settings of the broker: each of its listeners should ask for a login"
        text = f"{places(process.ports)}: what it asks for is not known: {error}"
        yield Finding(name_of(process), False, text, advice)
        return
    for port in process.ports:
        listener = known.get(port.port)
        asks = "" if listener is None else listener.asks
        what = "not a listener of its settings" if listener is None else f"listener {listener.name}"
        how = f"with {asks}" if asks else "WITHOUT a login"
        advice = "let each listener ask for a login: SASL in listener.security.protocol.map"
        yield Finding(
            name_of(process), bool(asks), f"{places([port])} ({what}): open to {reach([port])}, {how}", advice
        )


def _of_python(process: OwnProcess, told: DriverUses | None) -> Iterator[Finding]:
    """PySpark's daemon asks for a token. What else a program has opened is its own affair, and is shown."""
    known = {} if told is None else {port.port: port for port in told.python_ports}
    daemon = process.role == processes.PYTHON_OF_EXECUTOR and any(w.startswith("pyspark.") for w in process.words)
    # Each driver has the port for accumulators, and it asks for a token.
    only = told is None and process.role == processes.PYTHON_OF_DRIVER and len(process.ports) == 1
    for port in process.ports:
        spark = known.get(port.port)
        if spark is None and not (daemon or only):
            yield opened_by_program(process, port)
            continue
        asks = "a token" if spark is None else spark.asks
        use = "PySpark's" if spark is None else f"PySpark's, for {spark.use}"
        how = f"with {asks}" if asks else "WITHOUT a token"
        advice = (
            "Spark opens it for foreachBatch and for listeners in Python, without a token: call barograph.configure "
            "before that, or leave those out where there are other users"
        )
        yield Finding(name_of(process), bool(asks), f"{places([port])} ({use}): open to {reach([port])}, {how}", advice)
