"""Start a program, such as a Spark driver, and start it again whenever it dies.

barograph keep -- python driver.py                                keep a driver that calls barograph.start
barograph keep --most-restarts 10 --within 1h -- python driver.py give up if it dies ten times within an hour
barograph keep -- barograph submit app.py ARGUMENTS               keep a script of your own

A program dies if it ends with another code than 0, or by a signal such as kill -9 or the kernel's when memory runs out.
It is started again after 1 s, then 2, 4 ... 60 s if it dies again and again; once it has run for a minute, it begins
with 1 s again. Before each start, what is left of the dead program's process group is killed. A program that ends with
code 0 is done, and so is keep.

The program must be able to go on by itself: a driver does, if its queries have a checkpoint. barograph.start then
goes on from the last committed epoch, and every row is counted once.

SIGTERM and SIGINT (Ctrl-C) are passed on, and keep ends with the program. The exit code is that of the last program;
128 and its number if a signal ended it. Each death is one line on standard error. Options may also stand in
barograph.toml: [keep]. Words after -- are the program's own.
"""

import argparse

from barograph.cli.support.kept_program import KeepOptions, KeptProgram
from barograph.config.flags import add_flags, config_of
from barograph.model.checks import require


def configure(parser: argparse.ArgumentParser) -> None:
    parser.usage = "barograph keep [options] -- COMMAND [ARGUMENT ...]"
    add_flags(parser, "keep")
    parser.add_argument("words", nargs=argparse.REMAINDER, metavar="COMMAND", help="the program and its arguments")


def run(args: argparse.Namespace) -> int:
    command = args.words[1:] if args.words[:1] == ["--"] else args.words
    require(bool(command), "which program? barograph keep -- COMMAND [ARGUMENT ...]")
    return KeptProgram(command, KeepOptions(**config_of(args, "keep").fields("keep"))).run()
