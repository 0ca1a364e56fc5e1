"""Let a driver be changed again that 'barograph freeze' holds.

barograph thaw           the only driver on this machine
barograph thaw DRIVER    one, by the name of its cluster or application, its process id or its socket
"""

import argparse

from barograph.cli.support.drivers import HELP, find_driver, name_of


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("driver", nargs="?", metavar="DRIVER", help=HELP)


def run(args: argparse.Namespace) -> int:
    engine, status = find_driver(args.driver)
    engine.freeze(False)
    engine.close()
    acting = next((c for c in status["controllers"] if c["mode"] == "act"), None)
    by = "no controller acts on it" if acting is None else f"policy {acting['policy']} acts on it again"
    print(f"{name_of(status)} {'is no longer' if status['frozen'] else 'was not'} frozen: {by}")
    return 0
