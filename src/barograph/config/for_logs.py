"""Options of the log lines that commands, controllers and clusters write to standard error."""

from barograph.config.option import EVERY, Kind, Option, Scope

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
