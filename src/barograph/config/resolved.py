"""The configuration in force: of each option its value and where it came from. Later sources win.

The order is: defaults, the file, Spark's keys, then flags or arguments. A wrong value is refused wherever it is
written, also where a later source would replace it.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from barograph.config.contradictions import refuse_contradictions
from barograph.config.declared import OPTIONS
from barograph.config.option import Kind, Option, Scope
from barograph.config.sources import SetOption, from_arguments, from_file, from_flags, from_mapping, from_spark
from barograph.config.values import WrongValue, expected, in_toml, instead_of, read, shown
from barograph.model.checks import BadInput

DEFAULT = "default"


@dataclass(frozen=True, slots=True)
class Config:
    """values: by option name. origins: where each came from; ``default`` where it was not set. given: what was set, as
    it was written."""

    values: Mapping[str, object]
    origins: Mapping[str, str]
    given: Mapping[str, SetOption] = field(default_factory=dict)

    def __getitem__(self, name: str) -> Any:
        return self.values[name]

    def is_set(self, name: str) -> bool:
        return self.origins[name] != DEFAULT

    def any_set(self, group: str) -> bool:
        return any(self.is_set(name) for name in self.values if name.startswith(f"{group}."))

    def place(self, name: str) -> str:
        """Where it came from: ``default``, ``barograph.toml:3``, a flag or a key."""
        return self.origins[name].removesuffix(f": {name}")

    def refused(self, name: str, must_be: str, right: object, why: str = "") -> BadInput:
        """The sentence for a value that only packages above this one know to be wrong: a policy that does not exist."""
        return _refused(self.given[name], must_be, right, why)

    def fields(self, group: str) -> dict[str, Any]:
        """The options of a group as the fields of the value that holds them: ``guards`` gives ``cooldown_s`` etc."""
        return {OPTIONS[n].field: value for n, value in self.values.items() if n.startswith(f"{group}.")}

    def spark_settings(self, scopes: Collection[Scope] = (Scope.SESSION, Scope.QUERY)) -> dict[str, str]:
        """The options of sessions and queries that were set, as Spark's keys. The plug-in, the supervisor and
        ``barograph.start`` read them.

        scopes: others too, of which ``barograph.start`` reads those of the controller."""
        return {
            option.key_name: _in_spark(option, self[name])
            for name, option in OPTIONS.items()
            if option.scope in scopes and option.key_name and self.is_set(name)
        }


def resolve(
    file: Path | None = None,
    spark: Mapping[str, str] | None = None,
    flags: Mapping[str, object] | None = None,
    arguments: Mapping[str, object] | None = None,
    mapping: Mapping[str, object] | None = None,
    command: str = "",
) -> Config:
    """file: None for barograph.toml of the working directory. arguments, mapping: of a call in Python, a mapping by the
    names of options. command: only its contradictions are looked for."""
    given = [
        *from_file(file),
        *from_spark(spark or {}),
        *from_flags(flags or {}),
        *from_mapping(mapping or {}),
        *from_arguments(arguments or {}),
    ]
    values: dict[str, object] = {name: option.default for name, option in OPTIONS.items()}
    origins = dict.fromkeys(OPTIONS, DEFAULT)
    for one in given:
        values[one.option.name] = value_of(one)
        origins[one.option.name] = one.place
    config = Config(values, origins, {one.option.name: one for one in given})
    refuse_contradictions(config, command)
    return config


def value_of(given: SetOption) -> object:
    option = given.option
    try:
        return read(option, given.raw, given.text)
    except WrongValue as wrong:
        raise _refused(given, expected(option), instead_of(option, given.raw), wrong.why) from None


def _refused(given: SetOption, must_be: str, right: object, why: str) -> BadInput:
    reason = f" ({why.partition(': write ')[0]})" if why else ""
    return BadInput(f"{given.place} must be {must_be}, not {given.raw!r}{reason}: write {_written(given, right)}")


def _written(given: SetOption, right: object) -> str:
    """What to write there for this value."""
    option = given.option
    if given.form.startswith("--") and isinstance(right, tuple) and option.kind is Kind.TEXTS:
        return " ".join(given.form.format(_quoted(str(each))) for each in right)
    written = shown(option, right) if given.text else in_toml(option, right)
    if given.form.endswith("Ms={}"):
        written = f"{right * 1000:g}" if isinstance(right, float) else written
    elif given.text:
        written = _quoted(written)
    return given.form.format(written)


def _quoted(word: str) -> str:
    return f"'{word}'" if " " in word else word


def _in_spark(option: Option, value: object) -> str:
    if option.key_name.endswith("Ms") and isinstance(value, float):
        return str(round(value * 1000))
    return str(value).lower() if isinstance(value, bool) else shown(option, value)
