"""What a configuration cannot mean at once, though each value is right by itself. Pure."""

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from barograph.config.declared import OPTIONS
from barograph.config.option import RUN, UP, Option
from barograph.config.values import in_toml, shown
from barograph.model.checks import BadInput

if TYPE_CHECKING:
    from barograph.config.resolved import Config


def refuse_contradictions(config: "Config", command: str) -> None:
    """command: only its contradictions are looked for; empty for all."""
    for applies_to, contradiction in _CONTRADICTIONS:
        if not command or not applies_to or command in applies_to:
            contradiction(config)


def _at_most(small: str, large: str) -> "Callable[[Config], None]":
    def check(config: "Config") -> None:
        least, most = config[small], config[large]
        if least is not None and most is not None and least > most:
            a, b = OPTIONS[small], OPTIONS[large]
            raise BadInput(
                f"{_told(config, a)} is above {_told(config, b)}: write {small} = {in_toml(a, most)} or less, "
                f"or {large} = {in_toml(b, least)} or more"
            )

    return check


def _one_for_each(cores: str) -> "Callable[[Config], None]":
    def check(config: "Config") -> None:
        found, nodes = config[cores], config["cluster.nodes"]
        if isinstance(found, tuple) and len(found) != nodes:
            raise BadInput(
                f"{_told(config, OPTIONS[cores])} has {len(found)} values for {nodes} nodes: write one number for all, "
                f"or {nodes} numbers, or cluster.nodes = {len(found)}"
            )

    return check


def _only_with_kafka(name: str) -> "Callable[[Config], None]":
    def check(config: "Config") -> None:
        needed = config[name] != OPTIONS[name].default
        if needed and config["run.source"] != "kafka":
            raise BadInput(
                f'{_told(config, OPTIONS[name])} needs topics: write run.source = "kafka", which is --source kafka, '
                f"or leave {name} out"
            )

    return check


def _brokers_of_its_own(config: "Config") -> None:
    if config["run.brokers-file"] is not None and config["run.brokers"] is None:
        raise BadInput(
            f"{_told(config, OPTIONS['run.brokers-file'])} is for brokers of yours: write run.brokers = "
            f"{in_toml(OPTIONS['run.brokers'], OPTIONS['run.brokers'].example)}, which is --brokers, or leave it out"
        )


def _begins_before_the_load_ends(config: "Config") -> None:
    behind_s, seconds = config["run.behind"], config["run.seconds"]
    if behind_s >= seconds:
        a, b = OPTIONS["run.behind"], OPTIONS["run.seconds"]
        raise BadInput(
            f"with {_told(config, a)} the load ends before the query begins, by {_told(config, b)}: write "
            f"run.behind = {in_toml(a, seconds / 2)}, or run.seconds = {in_toml(b, behind_s * 2)}"
        )


def _told(config: "Config", option: Option) -> str:
    """``epochs.least (20s, barograph.toml:3)``."""
    return f"{option.name} ({shown(option, config[option.name])}, {config.place(option.name)})"


_CONTRADICTIONS: "Iterable[tuple[tuple[str, ...], Callable[[Config], None]]]" = (
    ((), _at_most("epochs.least", "epochs.most")),
    ((), _at_most("restart.first-wait", "restart.longest-wait")),
    ((), _at_most("keep.first-wait", "keep.longest-wait")),
    ((), _at_most("quiet.known-cycles", "quiet.look-cycles")),
    ((), _at_most("executors.least", "executors.most")),
    ((), _at_most("query.minimum-nodes", "query.desired-nodes")),
    ((), _at_most("priority.above-off-part", "priority.above-part")),
    ((RUN,), _only_with_kafka("run.sink")),
    ((RUN,), _only_with_kafka("run.brokers")),
    ((RUN,), _only_with_kafka("run.brokers-file")),
    ((RUN,), _brokers_of_its_own),
    ((RUN,), _begins_before_the_load_ends),
    ((RUN,), _one_for_each("run.node-cpu")),
    ((UP,), _one_for_each("cluster.node-cpu")),
)
