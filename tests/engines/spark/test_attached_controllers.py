"""Which controllers a driver knows: one may act, any number advise, and one whose keeper is gone does not count."""

import logging
import os
import subprocess
import sys

import pytest

from barograph.engines.spark.attached_controllers import AttachedControllers
from barograph.model import BadInput


def request(mode: str, pid: int = os.getpid(), policy: str = "adaptive") -> dict[str, object]:
    return {"do": "attach", "policy": policy, "mode": mode, "history": "/h", "log": "", "pid": pid}


def test_one_acts_and_any_number_advise() -> None:
    known = AttachedControllers(wall=lambda: 12.5)
    first = known.verb(request("act"))
    with pytest.raises(BadInput, match=rf"policy adaptive, process {os.getpid()}\) already acts on this driver: end"):
        known.verb(request("act", policy="liu"))
    known.verb(request("advise"))
    known.verb({"do": "detach", "number": first})
    third = known.verb(request("act", policy="liu"))
    assert [(c["number"], c["mode"], c["attached"]) for c in known.verb(None)] == [
        (1, "act", False), (2, "advise", True), (third, "act", True),
    ]  # fmt: skip
    assert known.verb(None)[0]["since_ms"] == 12_500


def test_only_those_that_are_there_count_as_advising() -> None:
    known = AttachedControllers()
    assert not known.only_advise(), "without a controller a driver keeps its queries going"
    known.verb(request("advise"))
    assert known.only_advise()
    acting = known.verb(request("act"))
    assert not known.only_advise()
    known.detach(acting)
    assert known.only_advise()


def test_each_is_logged_when_it_comes_and_when_it_goes(caplog: pytest.LogCaptureFixture) -> None:
    known = AttachedControllers()
    with caplog.at_level(logging.INFO, "barograph"):
        known.detach(known.attach("liu", "advise", "/h", "", os.getpid()))
        known.detach(7)
    assert caplog.messages == [
        f"controller 1 (policy liu, process {os.getpid()}) is attached to advise",
        "controller 1 (policy liu) is detached",
    ]


def test_a_controller_whose_keeper_is_gone_does_not_count() -> None:
    known = AttachedControllers()
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as keeper:
        known.verb(request("act", keeper.pid))
        with pytest.raises(BadInput, match="already acts"):
            known.verb(request("act"))
        keeper.kill()
        keeper.wait()
    known.verb(request("act"))
    assert [c["attached"] for c in known.table()] == [False, True]


def test_it_is_known_when_the_one_that_acts_left_in_order() -> None:
    now_s = [5.0]
    known = AttachedControllers(clock=lambda: now_s[0])

    def left_s() -> float | None:
        return known.left_s

    assert (known.acting(), left_s()) == (None, None)
    known.detach(known.verb(request("advise")))
    assert left_s() is None, "it ordered nothing"
    first = known.verb({**request("act"), "cycle_s": 300})
    acting = known.acting()
    assert acting is not None and (acting.number, acting.cycle_s) == (first, 300.0)
    known.detach(first)
    assert (known.acting(), left_s()) == (None, 5.0)
    now_s[0] = 9.0
    known.detach(first)
    assert left_s() == 5.0, "it was gone already"
    known.verb(request("act"))
    assert left_s() is None


def test_only_the_last_of_those_that_ended_are_kept() -> None:
    known = AttachedControllers()
    for _ in range(30):
        known.detach(known.attach("adaptive", "act", "/h", "", os.getpid()))
    assert len(known.table()) <= 12 and known.table()[-1]["number"] == 30


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ([], "must be an object"),
        ({"do": "steer"}, "there is no 'steer'"),
        ({**request("act"), "pid": "1"}, "pid must be a whole number"),
        ({**request("act"), "pid": 2**22 + 1}, "is not there"),
        ({**request("act"), "policy": 3}, "must be texts"),
        ({**request("act"), "cycle_s": "2s"}, "cycle_s must be a number"),
        (request("watch"), "the mode must be act or advise"),
        ({"do": "detach"}, "number must be a whole number"),
    ],
)
def test_wrong_requests_change_nothing(body: object, said: str) -> None:
    known = AttachedControllers()
    with pytest.raises(BadInput, match=said):
        known.verb(body)
    assert known.table() == []
