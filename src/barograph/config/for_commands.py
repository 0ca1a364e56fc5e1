"""Options of commands alone: of ``barograph keep``, which starts a program again when it dies, and of the log lines
that commands, controllers and clusters write to standard error."""

from barograph.config.option import EVERY, KEEP, Kind, Option, Scope

KEEPING = (
    Option(
        name="keep.first-wait", kind=Kind.DURATION, scope=Scope.PROGRAM, commands=(KEEP,), default=1.0, least=0,
        meaning="wait before a program that died is started again; it doubles with each further death",
    ),
    Option(
        name="keep.longest-wait", kind=Kind.DURATION, scope=Scope.PROGRAM, commands=(KEEP,), default=60.0, least=0,
        meaning="longest wait before a program is started again",
    ),
    Option(
        name="keep.well-after", kind=Kind.DURATION, scope=Scope.PROGRAM, commands=(KEEP,), default=60.0, least=0,
        meaning="a program that ran for so long was well: the wait begins again with the first",
    ),
    Option(
        name="keep.most-restarts", kind=Kind.WHOLE, scope=Scope.PROGRAM, commands=(KEEP,), least=0,
        unset="no limit", example="10", meaning="give up after so many restarts within keep.within",
    ),
    Option(
        name="keep.within", kind=Kind.DURATION, scope=Scope.PROGRAM, commands=(KEEP,), default=3600.0, above=0,
        meaning="restarts that are longer ago do not count for keep.most-restarts",
    ),
    Option(
        name="keep.end-within", kind=Kind.DURATION, scope=Scope.PROGRAM, commands=(KEEP,), default=30.0, least=0,
        meaning="a program that has not ended so long after SIGTERM or SIGINT was passed on is killed",
    ),
)  # fmt: skip

LOGS = (
    Option(
        name="log-level", kind=Kind.CHOICE, scope=Scope.COMMAND, commands=(EVERY,),
        choices=("debug", "info", "warning", "error"), unset="warning; a controller's own log: info", example="info",
        meaning="least level of log lines on standard error; a command that reads no file of options has it from its "
        "flag or from `BAROGRAPH_LOG_LEVEL`",
    ),
    Option(
        name="log-format", kind=Kind.CHOICE, scope=Scope.COMMAND, commands=(EVERY,), default="text",
        choices=("text", "json"), meaning="format of log lines",
    ),
)  # fmt: skip
