"""Forms of texts that are parsed elsewhere, and of addresses. Pure: a file that a text names is not read."""

import difflib
import re
from collections.abc import Iterable

from barograph.config.policy_options import parse_options
from barograph.config.written.form import Form
from barograph.config.written.frozen_periods import parse_periods
from barograph.model.checks import require
from barograph.model.loads.load import SHAPES, Load

STANDALONE = "spark://"
_ADDRESS = r"(\[[0-9a-fA-F:.]+\]|[^\s:,/\[\]]+)"
_PORT = r":\d{1,5}"


def _check_load(text: str) -> None:
    Load.parse(text, lambda _: "0,1")


def _near_loads(text: str) -> Iterable[str]:
    first, _, rest = text.strip().partition(" ")
    yield from (f"{shape} {rest}" for shape in difflib.get_close_matches(first.lower(), SHAPES, 1, 0.5))
    yield from (f"constant {number}" for number in re.findall(r"\d+(?:\.\d+)?", text)[:1])


def _check_master(text: str) -> None:
    right = re.fullmatch(rf"{STANDALONE}{_ADDRESS}{_PORT}(,{_ADDRESS}{_PORT})*", text)
    require(right is not None, f"{text!r} is of another kind")


def _near_masters(text: str) -> Iterable[str]:
    place = text.rpartition("//")[2]
    return [f"{STANDALONE}{place}", *([f"{STANDALONE}{place}:7077"] if "." in place else [])]


def _check_brokers(text: str) -> None:
    right = re.fullmatch(rf"{_ADDRESS}{_PORT}(,{_ADDRESS}{_PORT})*", text)
    require(right is not None, f"{text!r} is not HOST:PORT, or several of them separated by commas")


def _near_brokers(text: str) -> Iterable[str]:
    pieces = [piece.strip().rpartition("//")[2] for piece in text.split(",") if piece.strip()]
    yield ",".join(piece if re.search(rf"{_PORT}$", piece) else f"{piece}:9092" for piece in pieces)


def _near_options(text: str) -> Iterable[str]:
    name, sign, value = (part.strip() for part in re.sub(r"[=:]", "=", text, count=1).partition("="))
    return [f"{name}={value}"] if sign and value else [f"{name}=true"]


LOAD = Form("a load", _check_load, _near_loads)
MASTER = Form(f"the master of a standalone cluster, {STANDALONE}HOST:PORT", _check_master, _near_masters)
BROKERS = Form("addresses of brokers", _check_brokers, _near_brokers)
PERIODS = Form("periods of the week", parse_periods)
POLICY_OPTION = Form("NAME=VALUE", lambda text: parse_options([text]), _near_options)
