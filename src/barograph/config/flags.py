"""The flags of a command, made from the declarations, and the configuration from the flags that were given."""

import argparse
from pathlib import Path

from barograph.config.declared import OPTIONS
from barograph.config.option import Kind, Option
from barograph.config.resolved import Config, resolve
from barograph.config.sources import FILE_NAME, parse_conf
from barograph.config.values import range_of, shown


def add_flags(parser: argparse._ActionsContainer, command: str) -> None:
    """The flags of a command, and --config."""
    add_option_flags(parser, command)
    add_file_flag(parser)


def add_option_flags(parser: argparse._ActionsContainer, command: str) -> None:
    for option in OPTIONS.values():
        if command not in option.commands:
            continue
        action = "append" if option.kind is Kind.TEXTS else "store"
        metavar = option.metavar or ("|".join(option.choices) if option.choices else None) or _noun(option)
        parser.add_argument(option.flag_name, dest=option.name, action=action, metavar=metavar, help=help_of(option))


def add_file_flag(parser: argparse._ActionsContainer) -> None:
    help_text = f"file of options (default: {FILE_NAME} in the working directory, if there is one)"
    parser.add_argument("--config", type=Path, metavar="FILE", help=help_text)


def add_conf_flag(parser: argparse.ArgumentParser) -> None:
    help_text = "a spark.barograph.* key, as of spark-submit; may be given any number of times"
    parser.add_argument("--conf", action="append", default=[], metavar="KEY=VALUE", help=help_text)


def config_of(args: argparse.Namespace, *commands: str) -> Config:
    """The configuration of a command whose flags were added here. commands: the first is the one whose contradictions
    are looked for."""
    flags = {n: getattr(args, n, None) for n, option in OPTIONS.items() if {*commands} & {*option.commands}}
    return resolve(args.config, parse_conf(getattr(args, "conf", ())), flags, command=commands[0])


def help_of(option: Option) -> str:
    """One line: meaning, range, default."""
    bounds = range_of(option) if option.above != 0 and option.least != 0 else ""
    words = [w for w in (bounds, f"or {option.off}" if option.off else "") if w]
    if option.default is None:
        words.append(f"default: {option.unset}")
    elif option.default != ():
        words.append(f"default {shown(option, option.default)}")
    listed = f" ({'; '.join(words)})" if words else ""
    known = f": {', '.join(option.choices)}" if option.choices and option.metavar else ""
    return (option.meaning + known + listed).replace("%", "%%")


def _noun(option: Option) -> str:
    nouns = {Kind.DURATION: "TIME", Kind.WHOLE: "N", Kind.NUMBER: "X", Kind.SWITCH: "on|off"}
    return nouns.get(option.kind, option.name.rpartition(".")[2].upper())
