"""Runs one bench by name, or lists them."""

import importlib
import pkgutil
import signal
import sys

import bench


def main() -> int:
    names = sorted(m.name for m in pkgutil.iter_modules(bench.__path__) if not m.name.startswith("_"))
    wanted = sys.argv[1:]
    if len(wanted) != 1 or wanted[0] not in names:
        for name in names:
            summary = (importlib.import_module(f"bench.{name}").__doc__ or "").split("\n")[0]
            print(f"make bench ONLY={name:<12} {summary}")
        return 2 if wanted else 0
    # As with ctrl-c: what a bench has started ends with it.
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
    code: int = importlib.import_module(f"bench.{wanted[0]}").main()
    return code


if __name__ == "__main__":
    sys.exit(main())
