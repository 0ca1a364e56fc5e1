"""Hold a driver as it is: no plan is applied, no node is released or fetched, and epochs keep their length.

    barograph freeze           the only driver on this machine
    barograph freeze DRIVER    one, by the name of its cluster or application, its process id or its socket
    barograph thaw DRIVER      let its controller go on

Failed queries are still started again, and controllers go on recording what they would do. A driver that is started
again is not frozen.
"""

import argparse

from barograph.cli.support.drivers import HELP, find_driver, name_of


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("driver", nargs="?", metavar="DRIVER", help=HELP)


def run(args: argparse.Namespace) -> int:
    engine, status = find_driver(args.driver)
    engine.freeze()
    engine.close()
    name = name_of(status)
    print(f"{name} is frozen: nothing is changed until 'barograph thaw {status['pid']}'")
    return 0
