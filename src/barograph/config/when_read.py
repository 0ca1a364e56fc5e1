"""Refuses an option where nothing would read it: options are read when the session is made, when a query is started, or
when a controller is attached, as their scopes say. Pure.

A file holds for all of these, so what it says is refused by none of them.
"""

from collections.abc import Mapping

from barograph.config.option import EVERY, SPARK_PREFIX, Option, Scope
from barograph.config.resolved import Config
from barograph.config.sources import SetOption, from_mapping, from_spark
from barograph.model.checks import BadInput, require


def refuse_in_start(given: Mapping[str, object]) -> None:
    """given: options of one start, by name."""
    for one in from_mapping(given):
        if not {Scope.QUERY, Scope.CONTROLLER} & {*one.option.scopes}:
            raise _elsewhere(one)


def refuse_without_policy(given: Mapping[str, object], config: Config) -> None:
    """given: as before. config: in force, with these."""
    useless = [one.place for one in from_mapping(given) if Scope.QUERY not in one.option.scopes]
    require(
        config["policy"] is not None or not useless,
        f"{', '.join(useless)}: needs a policy, for example policy='adaptive'",
    )


def refuse_in_steer(conf: Mapping[str, str]) -> None:
    """conf: keys that were given to the command which attaches a controller."""
    for one in from_spark(conf):
        if Scope.CONTROLLER not in one.option.scopes:
            raise _elsewhere(one)


def at_a_start(application: Mapping[str, str], session: Mapping[str, str]) -> dict[str, str]:
    """Spark's settings for a query that is started now. application: as they were when it was made. session: as they
    are now in the query's own session, which began with those of the application.

    Options of single queries may be set there at any time. Refused: others that are not as in the application, whose
    values hold for all of it."""
    ours = {key: value for key, value in session.items() if key.startswith(SPARK_PREFIX)}
    theirs = {key: value for key, value in application.items() if not key.startswith(SPARK_PREFIX)}
    changed = sorted(key for key in {*application, *ours} - {*theirs} if application.get(key) != ours.get(key))
    for one in from_spark({key: ours.get(key, application.get(key, "")) for key in changed}):
        if Scope.QUERY not in one.option.scopes and not one.option.live:
            raise _of_the_application(one.option, ours, application)
    return {**theirs, **ours}


def _of_the_application(option: Option, session: Mapping[str, str], application: Mapping[str, str]) -> BadInput:
    here, there = (repr(of[option.key_name]) if option.key_name in of else "not set" for of in (session, application))
    why, last = "it is read when the application is made", "in barograph.toml"
    if Scope.CONTROLLER in option.scopes:
        why, last = "a controller steers all queries of an application", "of barograph.start"
    return BadInput(
        f"{option.key_name} is {here} in this session and {there} in its application: {why}; set it in the builder of "
        f"the first session, by --conf, or as {option.name} {last}"
    )


def _elsewhere(given: SetOption) -> BadInput:
    option = given.option
    if option.scope is Scope.SESSION:
        when = "from the session when a query starts" if option.live else "when the session is made"
        how = "by spark.conf.set, in the session's builder" if option.live else "in its builder"
        why = f"is read {when}: set {option.key_name} {how}, by --conf, or {option.name} in barograph.toml"
    elif option.scope is Scope.QUERY:
        why = f"is read when a query is started: give {option.name} to barograph.start, or set its key in the session"
    else:
        why = f"is an option of {_commands(option)}, and no query reads it: leave it out"
    return BadInput(f"{given.place} {why}")


def _commands(option: Option) -> str:
    return " and ".join("commands" if c == EVERY else f"'barograph {c}'" for c in option.commands)
