"""Runs one bench by name, or lists them."""

import importlib
import os
import pkgutil
import signal
import sys

import bench


def main() -> int:
    names = sorted(m.name for m in pkgutil.iter_modules(bench.__path__) if not m.name.startswith("_"))
    wanted = [name.replace("-", "_") for name in sys.argv[1:]]
    if len(wanted) != 1 or wanted[0] not in names:
        for name in names:
            summary = (importlib.import_module(f"bench.{name}").__doc__ or "").split("\n")[0]
            print(f"make bench ONLY={name:<12} {summary}")
        return 2 if wanted else 0
    _end_on_sigterm()
    code: int = importlib.import_module(f"bench.{wanted[0]}").main()
    return code


def _end_on_sigterm() -> None:
    """Exit as on ctrl-c, so that everything the bench has started is stopped.

    Processes that a bench forks inherit the handler. There it must not raise: a pool would take the exception for
    the result of the run, and its process would go on.
    """
    bench_pid = os.getpid()

    def end(number: int, _: object) -> None:
        if os.getpid() != bench_pid:
            os._exit(128 + number)
        sys.exit(128 + number)

    signal.signal(signal.SIGTERM, end)


if __name__ == "__main__":
    sys.exit(main())
