"""Hostile inputs: valid texts with values, characters and structure spoilt by dice. The same seed, the same input."""

import json
import random
import re
from collections.abc import Callable, Mapping
from typing import Any

ONE = "\N{MATHEMATICAL DOUBLE-STRUCK DIGIT ONE}"  # a digit to Python, and to no format
VALUES = (
    "0", "-1", "1e300", "-1e300", "1e-300", "nan", "inf", "-inf", "1" * 30, "9" * 5000, "0x7fffffffffffffff", "true",
    '""', '"x"', "''", "[]", "{}", "[[[[]]]]", "1979-05-27T07:32:00Z", '"' + "x" * 2000 + '"', '"\\u0000"',
    "2.5", "3", "1000000", "1e9", "null", '"constant 1e9"', '"random 1..25 x200 every 1ms seed=7"', '"1e99h"',
)  # fmt: skip
WORDS = (
    "constant", "steps", "ramp", "onoff", "random", "batches", "trace", "noise", "every", "seed=7", "0s=1", "60s=1e9",
    "1..25", "x200", "1ms", "1e300s", "-5", "nan", "rows=1e9", "count=1000000000", "within=1ms", "high=80", "low=40",
    "share=0.5", "period=60s", "period=0s", "share=2", "/dev/zero", "0.5", "5s", "=", "", "\\0", ONE, "9" * 400,
)  # fmt: skip
ODD: tuple[Any, ...] = (
    None, True, False, 0, -1, 1, 2.5, 1e300, -1e300, float("nan"), float("inf"), 10**30, 2**63, "", "x", "t/s/0",
    "n-1/0", "\0", "x" * 2000, [], {}, [[]], {"a": {}}, [None], "t/s/-1", "n-1/99999999999999999999", ONE, 10**9,
)  # fmt: skip
_TOKEN = re.compile(r'"[^"\n]*"|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?|\btrue\b|\bfalse\b|\bnull\b')

Spoil = Callable[[random.Random], bytes]


def spoilt_text(text: str, dice: random.Random) -> bytes:
    """Some tokens replaced by hostile ones, then, sometimes, characters spoilt as well."""
    tokens = list(_TOKEN.finditer(text))
    for token in sorted(dice.sample(tokens, min(len(tokens), dice.choice((0, 1, 1, 2, 5)))), key=lambda t: -t.start()):
        text = text[: token.start()] + dice.choice(VALUES) + text[token.end() :]
    if dice.random() < 0.3:
        lines = text.splitlines(keepends=True)
        line = dice.randrange(len(lines))
        lines[line : line + 1] = dice.choice(([], [lines[line]] * 2, [lines[line], dice.choice(lines)]))
        text = "".join(lines)
    return spoilt_bytes(text.encode(), dice) if dice.random() < 0.3 else text.encode()


def spoilt_bytes(content: bytes, dice: random.Random) -> bytes:
    for _ in range(dice.choice((1, 1, 2, 4, 16))):
        at, until = sorted((dice.randrange(len(content) + 1), dice.randrange(len(content) + 1)))
        what = dice.randrange(6)
        if what == 0:
            content = content[:at] + content[min(until, at + 40) :]
        elif what == 1:
            content = content[:at] + dice.randbytes(dice.choice((1, 1, 2, 8))) + content[at:]
        elif what == 2 and content:
            at = min(at, len(content) - 1)
            content = content[:at] + bytes([content[at] ^ (1 << dice.randrange(8))]) + content[at + 1 :]
        elif what == 3:
            many = dice.choice((b"[", b"{", b"(", b'"', b"x.", b"0", b"\n")) * dice.choice((1, 9, 9000))
            content = content[:at] + many + content[at:]
        elif what == 4:
            content = content[:at]
        else:
            content = content[:until] + content[at:]
        content = content[:200_000]
    return content


def spoilt_value(value: Any, dice: random.Random) -> Any:
    """The same structure with a few values, keys or whole parts replaced, left out or repeated."""
    for _ in range(dice.choice((0, 1, 1, 2, 4))):
        value = _spoilt_once(value, dice)
    return value


def _spoilt_once(value: Any, dice: random.Random) -> Any:
    if isinstance(value, dict) and value and dice.random() < 0.85:
        key = dice.choice(list(value))
        rest = {k: v for k, v in value.items() if k != key}
        what = dice.random()
        if what < 0.1:
            return rest
        if what < 0.2:
            return {**rest, dice.choice((key + "x", "", "\0", "x" * 500, "t/s/0")): value[key]}
        return {**rest, key: _spoilt_once(value[key], dice)}
    if isinstance(value, list) and value and dice.random() < 0.85:
        at = dice.randrange(len(value))
        what = dice.random()
        if what < 0.1:
            return value[:at] + value[at + 1 :]
        if what < 0.2:
            return value + [value[at]] * dice.choice((1, 1, 200))
        return [*value[:at], _spoilt_once(value[at], dice), *value[at + 1 :]]
    return dice.choice(ODD)


def spoilt_json(value: Any, dice: random.Random) -> bytes:
    if dice.random() < 0.02:
        return (dice.choice("[{") + ('"a":' if dice.random() < 0.5 else "")).encode() * dice.choice((40, 100_000))
    content = json.dumps(spoilt_value(value, dice), ensure_ascii=dice.random() < 0.9).encode("utf-8", "surrogatepass")
    return spoilt_bytes(content, dice) if dice.random() < 0.3 else content


def spoilt_words(dice: random.Random) -> bytes:
    words = [dice.choice(WORDS) for _ in range(dice.choice((1, 2, 3, 5, 9)))]
    text = " ".join(words)
    if dice.random() < 0.5:
        text = dice.choice(LOADS)
        for word in dice.sample(text.split(), min(2, len(text.split()))):
            text = text.replace(word, dice.choice(WORDS) if dice.random() < 0.5 else word, 1)
    return spoilt_bytes(text.encode(), dice) if dice.random() < 0.3 else text.encode("utf-8", "surrogatepass")


LOADS = (
    "constant 2000", "steps 0s=500 60s=2500 120s=500", "ramp 0s=500 60s=2500",
    "onoff high=80 low=40 share=0.5 period=60s",
    "random 1..25 x200 every 10s seed=7", "batches rows=640 every=60s count=80 within=1s",
    "constant 80 noise 0.05 every 5s seed=7",
)  # fmt: skip

CONFIGURATION = """
policy = "adaptive"
options = ["theta_pct=10"]
cycle = "2s"
mode = "act"
enforce = "auto"
recovery = "30s"
history-size = 512
in-flight = "0.2s"
[guards]
cooldown = "20s"
cuts-per-hour = 240
frozen = false
[quiet]
calm-part = 0.5
look-cycles = 30
"""

SCENARIO = """
name = "small"
title = "a small run"
duration_s = 40
cycle_s = 5
epoch_s = 20
grain = "rows"
nodes = [{name = "n", count = 2, cpu_pct = 200, slots = 2, seats = 8, memory_mb = 8192, clock_mhz = 2000}]
[[topologies]]
name = "t"
level = 2
producers = 1
operators = [
  {name = "s", parallelism = 2, load = "ramp 0s=100 60s=500", cost_ms = 0.5},
  {name = "k", parallelism = 3, cost_ms = 3, stateful = true, state_mb = 5, max_parallelism = 8, spread = 0.1},
]
edges = [{source = "s", target = "k", selectivity = 1.5, grouping = "fields", keys = 100, skew = 0.5}]
trigger = {above_rows_s = 300, seconds = 3, level = 1}
[[losses]]
at_s = 10
node = "n-1"
back_s = 5
[reassign]
every_s = 10
instances = 2
"""

CLUSTER: Mapping[str, Any] = {
    "clusters": {
        "c": {
            "nodes": [{"count": 3, "rack": "r0", "slots": 4, "mem_mb": 4000, "cpu": 400, "seats": 4}],
            "topologies": [
                {
                    "name": "t",
                    "priority": 1,
                    "components": [
                        {"name": "s", "source": True, "parallelism": 2, "cpu": 10, "mem_mb": 100, "inputs": []},
                        {
                            "name": "k", "source": False, "parallelism": 4, "cpu": 10, "mem_mb": 100,
                            "inputs": [{"from": "s", "grouping": "shuffle"}],
                        },
                    ],
                }
            ],
            "placement": [{"topology": "t", "operator": "s", "index": 0, "node": "n0000", "slot": 0}],
        }
    }
}  # fmt: skip

PLAN: Mapping[str, Any] = {
    "placement": [
        {"topology": "t", "operator": "s", "index": 0, "node": "n-1", "slot": 0},
        {"topology": "t", "operator": "k", "index": 1, "node": "n-2", "slot": 1},
    ],
    "rescales": [{"topology": "t", "operator": "k", "parallelism": 4}],
    "cuts": ["t"],
    "shares_pct": {"t/s/0": 50.0},
    "limits_pct": {"t/k/0": 80.0},
    "mode": "cut",
    "delay_s": 1.0,
    "version": 3,
}

REQUESTS: tuple[Mapping[str, Any], ...] = (
    {"verb": "apply", "body": dict(PLAN)},
    {"verb": "observe", "body": {"observer": "7-1a2b3c4d"}},
    {"verb": "nodes", "body": {"release": ["n-1"], "fetch": []}},
    {"verb": "pace", "body": {"t": 20.0}},
    {"verb": "news", "body": {"seen": 0, "seconds": 2.0}},
    {"verb": "controllers", "body": None},
    {
        "verb": "controllers",
        "body": {"do": "attach", "policy": "adaptive", "mode": "advise", "history": "/h", "log": "", "pid": 1},
    },
    {"verb": "controllers", "body": {"do": "detach", "number": 1}},
    {"verb": "freeze", "body": {"on": True}},
    {"verb": "freeze", "body": {"on": False}},
    {"verb": "glance", "body": {"observer": "7-1a2b3c4d"}},
    {"verb": "status", "body": None},
    {"verb": "uses", "body": None},
    {"verb": "priority", "body": {"do": "set", "topology": "t", "level": 2}},
    {"verb": "priority", "body": {"do": "trigger", "topology": "t", "on": True, "level": 1}},
)
