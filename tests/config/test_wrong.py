"""A wrong configuration is refused in one sentence: where it is written, what is wrong, and what to write instead."""

import re
from pathlib import Path

import pytest

from barograph.config import resolve
from barograph.config.option import KEEP
from barograph.config.sources import parse_conf
from barograph.model import BadInput
from barograph.policy.configured import require_policy

# what is wrong -> lines of the file, and how the sentence must end
IN_FILE = {
    # names
    "name with a typing error": ('cylce = "2s"', "bad.toml:1: there is no option 'cylce': write cycle"),
    "name in a group with a typing error": (
        '[guards]\ncooldwn = "5s"', "bad.toml:2: there is no option 'guards.cooldwn': write guards.cooldown"),
    "name with an underscore": ('in_flight = "1s"', "bad.toml:1: there is no option 'in_flight': write in-flight"),
    "name as in Python": (
        '[guards]\ncooldown_s = 5', "bad.toml:2: there is no option 'guards.cooldown_s': write guards.cooldown"),
    "name without its group": (
        '\nrelease-after = "5s"', "bad.toml:2: there is no option 'release-after': write nodes.release-after"),
    "name in the wrong group": (
        "[run]\nseats = 2\n[guards]\nspare = 1", "bad.toml:4: there is no option 'guards.spare': write nodes.spare"),
    "a group that does not exist": (
        '[gaurds]\ncooldown = "5s"', "there is no option 'gaurds.cooldown': write guards.cooldown"),
    "a name like no other": ("xyzzy = 1", "write one of the names that 'barograph config reference' lists"),
    # types
    "number for a time": ("cycle = 5", 'bad.toml:1: cycle must be a time above 0s, not 5: write cycle = "5s"'),
    "text for a whole number": ('[cluster]\nnodes = "4"', "write cluster.nodes = 4"),
    "half a node": ("[nodes]\nspare = 1.5", "write nodes.spare = 2"),
    "text for a number": ('[epochs]\nnear = "0.3"', "write epochs.near = 0.3"),
    "number for a switch": ("allowlist-check = 1", "must be on or off, not 1: write allowlist-check = true"),
    "switch for a choice": ("enforce = true", "one of auto, cgroup, cooperative, off, not True"),
    "true for a whole number": ("[cluster]\nseats = true", "write cluster.seats = 4"),
    "a list for a time": ("recovery = []", 'or off, not []: write recovery = "30s"'),
    "a table for a time": ('[cycle]\nevery = "2s"', 'cycle must be a time above 0s'),
    "text for a list": ('[run]\nat = "20:cut"', 'write run.at = ["20:cut"]'),
    "number for a text": ("policy = 7", 'policy must be a text, not 7: write policy = "adaptive"'),
    # units
    "time without a unit": ('cycle = "5"', 'write cycle = "5s"'),
    "unit written out": ('cycle = "5 minutes"', 'write cycle = "300s"'),
    "unit that is none": ('recovery = "20 sec"', 'write recovery = "20s"'),
    "word that stands for none": ('[nodes]\nrelease-after = "nevr"', 'write nodes.release-after = "never"'),
    # ranges and choices
    "a time of nothing": ('cycle = "0s"', 'cycle must be a time above 0s, not \'0s\': write cycle = "2s"'),
    "an epoch too short": ('epoch = "10ms"', 'of at least 1s, not \'10ms\': write epoch = "1s"'),
    "too many nodes": ("[cluster]\nnodes = 1000", "from 1 to 250, not 1000: write cluster.nodes = 250"),
    "more than all": ("[nodes]\nfill = 120", "above 0 and at most 100, not 120: write nodes.fill = 100"),
    "too little memory": ("[cluster]\nmemory = 64", "of at least 512, not 64: write cluster.memory = 512"),
    "a choice with a typing error": ('mode = "advice"', 'one of act, advise, not \'advice\': write mode = "advise"'),
    "a way to move that is none": ('migration = "warmcut"', 'write migration = "warm-cut"'),
    # texts that are parsed
    "a policy with a typing error": (
        'policy = "adaptve"', "bad.toml:1: policy must be the name of a policy, not 'adaptve' (there is no policy "
        '\'adaptve\'): write policy = "adaptive"'),
    "an option of a policy without a value": (
        'options = ["lend"]', '(\'lend\' is not NAME=VALUE, for example theta_pct=10): '
        'write options = ["lend=true"]'),
    "an option of a policy with a typing error": (
        'policy = "adaptive"\noptions = ["phi=1", "lent=false"]', "policy adaptive has no option 'lent'"),
    "a value that the policy's option cannot have": (
        'policy = "adaptive"\noptions = ["lend=5"]', 'bad.toml:2: options must be options of policy adaptive'),
    "a share of nothing": ('share = "x"', 'must be per cent of a core for operators, not \'x\''),
    "a load of no known shape": ('[run]\nload = "constnt 20"', 'write run.load = "constant 20"'),
    "a load without its shape": ('[run]\nload = "250"', 'write run.load = "constant 250"'),
    "instances without a number": (
        '[run]\nparallelism = "split=2,count"', 'write run.parallelism = "split=2,count=4"'),
    "busy work that is no number": ('[run]\nbusy = "split=much"', 'write run.busy = "split=100"'),
    "an action at no second": ('[run]\nat = ["5:cut", "x:cut"]', 'write run.at = ["5:cut", "20:cut"]'),
    "an action with a typing error": ('[run]\nat = ["5:kil driver"]', 'write run.at = ["5:kill driver"]'),
    "a master of another kind": ('[run]\nmaster = "yarn"', 'write run.master = "spark://127.0.0.1:7077"'),
    "a master without its scheme": ('[run]\nmaster = "10.0.0.7:7077"', 'write run.master = "spark://10.0.0.7:7077"'),
    "brokers without a port": (
        '[run]\nsource = "kafka"\nbrokers = "one,two:9093"', 'write run.brokers = "one:9092,two:9093"'),
    "periods that are none": (
        '[guards]\nfrozen-in = "weekends"',
        "bad.toml:2: guards.frozen-in must be periods of the week, not 'weekends' ('weekends' is no period of the "
        'week): write guards.frozen-in = "Mo-Fr 08:00-18:00"'),
    "a range upside down": ('[query]\ninstances = "split=8..1"', 'write query.instances = "split=1..8"'),
    "a range as elsewhere": ('[query]\ninstances = "split=1-8"', 'write query.instances = "split=1..8"'),
    "a name left out": ('[query]\nexcluded = "a,,b"', 'write query.excluded = "a,b"'),
    "CPU that is no number": ('[query]\ncpu = "split=hot"', 'write query.cpu = "split=40"'),
    # contradictions
    "least above most": (
        '[epochs]\nleast = "400s"',
        "epochs.least (400s, bad.toml:2) is above epochs.most (300s, default): write epochs.least = \"300s\" or less, "
        'or epochs.most = "400s" or more'),
    "first wait above the longest": ('[restart]\nfirst-wait = "1m"', 'write restart.first-wait = "15s" or less'),
    "minimum above what is desired": (
        "[query]\ndesired-nodes = 1\nminimum-nodes = 3", "write query.minimum-nodes = 1 or less"),
    "known after more than is looked at": ("[quiet]\nlook-cycles = 2", "write quiet.known-cycles = 2 or less"),
    "cores of too few nodes": (
        "[run]\nnode-cpu = [0.6, 0.3]", "has 2 values for 3 nodes: write one number for all, or 3 numbers"),
    "a program's first wait above the longest": ('[keep]\nfirst-wait = "2m"', 'write keep.first-wait = "60s" or less'),
    "a sink without topics": (
        '[run]\nsink = "kafka"', 'run.sink (kafka, bad.toml:2) needs topics: write run.source = "kafka"'),
    "brokers for the replay source": (
        '[run]\nbrokers = "127.0.0.1:9092"', 'run.brokers (127.0.0.1:9092, bad.toml:2) needs topics: write run.source'),
    "options for no broker": (
        '[run]\nsource = "kafka"\nbrokers-file = "client.properties"', 'write run.brokers = "127.0.0.1:9092"'),
    "a query that begins after its load": (
        '[run]\nseconds = 20\nbehind = "20s"', 'write run.behind = "10s", or run.seconds = 40'),
    # not a file of options
    "text without quotes": ("cycle = 5s", 'bad.toml:1: this is not TOML'),
    "the same, and what to write": ("policy = adaptive", 'write policy = "adaptive"'),
}  # fmt: skip
IN_SPARK = {
    "key in other letters": ({"spark.barograph.inflightms": "100"}, "write spark.barograph.inFlightMs"),
    "key of another option": ({"spark.barograph.guards.cooldwn": "5s"}, "write spark.barograph.guards.cooldown"),
    "value that is no time": ({"spark.barograph.inFlightMs": "soon"}, "write spark.barograph.inFlightMs=200"),
    "value without a unit": ({"spark.barograph.guards.cooldown": "5"}, "write spark.barograph.guards.cooldown=5s"),
    "text that is parsed": ({"spark.barograph.query.cpu": "split=hot"}, "write spark.barograph.query.cpu=split=40"),
    "no such policy": ({"spark.barograph.policy": "adaptve"}, "write spark.barograph.policy=adaptive"),
    "value below the range": ({"spark.barograph.query.level": "0"}, "write spark.barograph.query.level=1"),
}
IN_FLAGS = {
    "flag without a unit": ({"cycle": "7"}, "--cycle must be a time above 0s, not '7': write --cycle 7s"),
    "flag of another name": ({"nodes.spare": "one"}, "--spare-nodes must be a whole number"),
    "action of a flag": ({"run.at": ["5:cut", "5:jump"]}, "write --at 5:cut --at 5:cut"),
    "load of a flag": ({"run.load": "constnt 20"}, "write --load 'constant 20'"),
    "flag with a typing error": ({"nodes.release-after": "nevr"}, "write --release-after never"),
}


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def refusal(**sources: object) -> str:
    with pytest.raises(BadInput) as refused:
        require_policy(resolve(**sources))  # type: ignore[arg-type]  # by name
    sentence = str(refused.value)
    assert "\n" not in sentence
    assert "write " in sentence
    return sentence


@pytest.mark.parametrize("case", IN_FILE)
def test_in_the_file(case: str) -> None:
    text, expected = IN_FILE[case]
    Path("bad.toml").write_text(text, encoding="utf-8")
    sentence = refusal(file=Path("bad.toml"))
    assert expected in sentence
    assert "bad.toml:" in sentence


def test_what_is_to_be_written_is_right() -> None:
    """Each line that a sentence proposes is taken, where the sentence proposes a whole line."""
    proposed = 0
    for text, _ in IN_FILE.values():
        Path("bad.toml").write_text(text, encoding="utf-8")
        found = re.search(r": write ([\w.-]+ = .+?)(( or less|, or |, which ).*)?$", refusal(file=Path("bad.toml")))
        if found is not None:
            Path("right.toml").write_text(f"{found[1]}\n", encoding="utf-8")
            require_policy(resolve(Path("right.toml"), command=KEEP))  # other lines of the file are left out
            proposed += 1
    assert proposed > 40


@pytest.mark.parametrize("case", IN_SPARK)
def test_in_the_keys_of_spark(case: str) -> None:
    conf, expected = IN_SPARK[case]
    sentence = refusal(spark=conf)
    assert expected in sentence
    assert next(iter(conf)) in sentence


@pytest.mark.parametrize("case", IN_FLAGS)
def test_in_flags(case: str) -> None:
    flags, expected = IN_FLAGS[case]
    assert expected in refusal(flags=flags)


@pytest.mark.parametrize("text", ["spark.barograph.cycle", "=5", "spark.master=local"])
def test_conf_that_is_no_key_of_ours(text: str) -> None:
    with pytest.raises(BadInput, match="write "):
        parse_conf([text])


def test_an_argument_of_a_call() -> None:
    assert "level must be a whole number of at least 1, not 0: write level=1" in refusal(arguments={"query.level": 0})


def test_a_file_that_is_not_there() -> None:
    with pytest.raises(BadInput, match=r"no\.toml cannot be read"):
        resolve(Path("no.toml"))


def test_a_file_that_is_not_text() -> None:
    Path("bytes.toml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(BadInput, match="not UTF-8"):
        resolve(Path("bytes.toml"))


def test_a_wrong_value_is_refused_also_where_a_flag_replaces_it() -> None:
    Path("barograph.toml").write_text("cycle = 5\n", encoding="utf-8")
    assert "barograph.toml:1" in refusal(flags={"cycle": "2s"})


@pytest.mark.parametrize("text", ["", "0.6,", "much", "0.6;0.3"])
def test_cores_that_are_not_numbers(text: str) -> None:
    sentence = refusal(flags={"run.node-cpu": text})
    assert "--node-cpu must be cores of at least 0.01, one number for all nodes or one for each" in sentence
    assert "write --node-cpu 0.6" in sentence
