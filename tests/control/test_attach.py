"""A controller is attached to a driver as the configuration says: one may act, and what is wrong starts nothing."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.control.test_process import Cluster, wait_until

from barograph.config import Config, resolve
from barograph.control.attach import attach, attach_once, histories_here
from barograph.engines.spark.folders import state_folder
from barograph.history import entries
from barograph.history.files import parts
from barograph.model import BadInput

pytestmark = pytest.mark.limit(300)


@pytest.fixture
def driver(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Cluster]:
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "driver"
    folder.mkdir(mode=0o700)
    found = Cluster(folder)
    yield found
    found.close()


def settings(**more: object) -> Config:
    return resolve(mapping={"policy": "adaptive", "cycle": "300ms", "nodes.release-after": "never", **more})


def recorded(history: Path) -> int:
    return max((p.last for p in parts(history)), default=0)


def test_it_acts_and_the_driver_knows_it(driver: Cluster, tmp_path: Path) -> None:
    attached = attach(driver.path, settings(history="kept"), {"lend": False})
    try:
        (entry,) = driver.controllers.table()
        assert (entry["policy"], entry["mode"], entry["attached"]) == ("adaptive", "act", True)
        assert entry["history"] == str(tmp_path / "kept")
        wait_until(lambda: bool(driver.plans) and recorded(tmp_path / "kept") >= 2)
        assert attached.config.options == {"lend": False}
        assert attached.log is not None and entry["log"] == str(attached.log)
    finally:
        attached.close()
    assert [c["attached"] for c in driver.controllers.table()] == [False]
    assert attached.keeper.process.poll() is not None


def test_a_second_one_that_acts_is_refused_and_one_that_advises_is_not(driver: Cluster) -> None:
    first = attach(driver.path, settings())
    try:
        with pytest.raises(BadInput, match="already acts on this driver: end that one first, or only advise"):
            attach(driver.path, settings(policy="liu"))
        second = attach(driver.path, settings(policy="liu", mode="advise"))
        second.close()
        assert [(c["policy"], c["attached"]) for c in driver.controllers.table()] == [
            ("adaptive", True),
            ("liu", False),
        ]
    finally:
        first.close()
    attach(driver.path, settings(policy="liu")).close()


def test_in_advise_mode_nothing_is_changed_and_all_is_recorded(driver: Cluster, tmp_path: Path) -> None:
    attached = attach(driver.path, settings(mode="advise", history="kept"))
    try:
        wait_until(lambda: recorded(tmp_path / "kept") >= 5)
    finally:
        attached.close()
    found = [e.cycle for e in entries(tmp_path / "kept") if e.cycle is not None]
    assert found and all(c.outcome is None for c in found)
    assert any(c.plan.placement or c.plan.limits_pct for c in found), "it says what it would do"
    assert (driver.plans, driver.paces) == ([], [])


@pytest.mark.parametrize(
    ("more", "options", "said"),
    [
        ({"policy": "adaptiv"}, {}, "adaptiv"),
        ({}, {"lent": True}, "policy adaptive has no option 'lent'"),
        ({"policy": "even", "theta": 5.0}, {}, "policy even has no theta"),
        ({"migration": "restart-app"}, {}, "choose another mode than restart-app"),
    ],
)
def test_what_is_wrong_starts_nothing(
    driver: Cluster, more: dict[str, object], options: dict[str, object], said: str
) -> None:
    with pytest.raises(BadInput, match=said):
        attach(driver.path, settings(**more), options)
    assert driver.controllers.table() == []
    assert not list(state_folder().glob("logs/*"))


def test_all_queries_of_a_driver_share_one_controller(driver: Cluster) -> None:
    first = attach_once(driver.path, settings())
    try:
        assert attach_once(driver.path, settings()) is first
        with pytest.raises(BadInput, match="is steered by policy adaptive in mode act already"):
            attach_once(driver.path, settings(mode="advise"))
        with pytest.raises(BadInput, match="start this query with the same policy"):
            attach_once(driver.path, settings(), {"lend": False})
        assert len(driver.controllers.table()) == 1
        driver.controllers.detach(first.number)  # as when another application of the same process has begun
        second = attach_once(driver.path, settings())
        assert second is not first and first.keeper.process.poll() is not None
        second.close()
    finally:
        first.close()


def test_what_an_earlier_controller_recorded_is_known(driver: Cluster, tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    first = attach_once(driver.path, settings(history="kept"))
    try:
        assert histories_here() == {kept: 0}
        wait_until(lambda: recorded(kept) >= 2)
    finally:
        first.close()
    before = recorded(kept)
    second = attach_once(driver.path, settings(history="kept"))
    try:
        assert histories_here() == {kept: before}
        wait_until(lambda: recorded(kept) > before)
        assert histories_here() == {kept: before}, "what it recorded itself is not of an earlier one"
    finally:
        second.close()
