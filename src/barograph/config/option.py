"""What an option is: its name, type, unit, default, range and meaning, and how it is called where it can be set."""

import re
from dataclasses import dataclass
from enum import StrEnum

from barograph.config.written.form import Form

SPARK_PREFIX = "spark.barograph."


class Kind(StrEnum):
    """duration: seconds inside, written with a unit. cores: one number for all nodes, or one for each."""

    DURATION = "duration"
    WHOLE = "whole number"
    NUMBER = "number"
    SWITCH = "switch"
    CHOICE = "choice"
    TEXT = "text"
    TEXTS = "list of texts"
    CORES = "cores"


class Scope(StrEnum):
    """What an option changes, which says when it is read: a run of a workload, the cluster, the session of an
    application with its executors, the controller, a query and its restarts, how a program is kept, or what commands
    log."""

    RUN = "run"
    CLUSTER = "cluster"
    SESSION = "session"
    CONTROLLER = "controller"
    QUERY = "query"
    PROGRAM = "program"
    COMMAND = "command"


UP = "cluster up"
RUN = "run"
KEEP = "keep"
STEER = "steer"
SUBMIT = "submit"
SIM = "sim"
REPLAY = "replay"
PLAN = "plan"
EVERY = "every command"


@dataclass(frozen=True, slots=True, kw_only=True)
class Option:
    """least, most: bounds that are allowed. above: a bound that is not. unit: of numbers.

    off: the word that stands for None ("off", "never"). unset: what happens without a value, where None is the default.
    also: what else it changes. live: of an option of the session, the plug-in reads its key whenever a query starts.
    commands: those with a flag of it. flag, key: where they differ from the name. form: what a text, or each text of a
    list, must look like; None for any.
    """

    name: str
    kind: Kind
    scope: Scope
    meaning: str
    also: Scope | None = None
    live: bool = False
    default: object = None
    least: float | None = None
    above: float | None = None
    most: float | None = None
    unit: str = ""
    off: str = ""
    unset: str = ""
    choices: tuple[str, ...] = ()
    commands: tuple[str, ...] = ()
    flag: str = ""
    metavar: str = ""
    key: str = ""
    example: str = ""
    form: Form | None = None

    @property
    def scopes(self) -> tuple[Scope, ...]:
        return (self.scope,) if self.also is None else (self.scope, self.also)

    @property
    def flag_name(self) -> str:
        """Empty where no command has a flag of it."""
        return (self.flag or f"--{self.name.rpartition('.')[2]}") if self.commands else ""

    @property
    def key_name(self) -> str:
        """The key in Spark's configuration. Empty for options that must be known before there is a Spark."""
        if self.scope not in (Scope.SESSION, Scope.CONTROLLER, Scope.QUERY):
            return ""
        return self.key or SPARK_PREFIX + re.sub(r"-(\w)", lambda m: m[1].upper(), self.name)

    @property
    def field(self) -> str:
        """The name of the field that holds it: ``guards.cooldown`` is ``cooldown_s``."""
        plain = self.name.rpartition(".")[2].replace("-", "_")
        suffix = {"per cent": "_pct", "MB": "_mb", "ms": "_ms"}.get(self.unit, "")
        return plain + ("_s" if self.kind is Kind.DURATION else suffix)
