"""Names, options, and what baselines take from another run."""

from dataclasses import replace

import pytest
from tests.cycles import WORD_COUNT, chain, nodes, remembered, seen, work

from barograph.control.decide import decide
from barograph.forecast import BestOf, Trend
from barograph.migrate.plan import Migrate
from barograph.model import BadInput, Demand, Metrics, MigrationMode, Operator, OperatorDemand, ReasonCode
from barograph.policy.definition import learned, options_of, with_options, with_shares
from barograph.policy.registry import DEFAULT, POLICIES, named
from barograph.scale import CpuShare, Fixed

ORDERED = (
    "even isolation r-storm t-storm offline online liu autoscale sps dps n-storm n-storm-plus "
    "fixed fixed-peak fixed-equal spark adaptive"
)


def test_every_policy_is_there() -> None:
    assert set(ORDERED.split()) <= set(POLICIES)
    assert DEFAULT in POLICIES
    assert all(name == policy.name and policy.paper and policy.line for name, policy in POLICIES.items())
    assert all(policy.learns_from in ("", *POLICIES) for policy in POLICIES.values())


def test_only_liu_wants_two_workers_on_a_node() -> None:
    wanted = {name: policy.workers_per_node for name, policy in POLICIES.items()}
    assert {name: n for name, n in wanted.items() if n != 1} == {"liu": 2, "spark": None}
    assert named("liu").migrator == Migrate(MigrationMode.WORKER)  # a move restarts the workers concerned


def test_an_unknown_name_is_refused_with_the_known_ones() -> None:
    with pytest.raises(BadInput, match=r"there is no policy 'best'; there are adaptive, liu"):
        named("best")


PAPERS: dict[str, dict[str, object]] = {
    "liu": {"theta_pct": 20.0, "phi": 5},
    "autoscale": {
        "window_s": 60.0,
        "samples_ahead": 1,
        "theta_min": 0.3,
        "theta_max": 0.8,
        "combine": "max",
        "one_per_worker": True,
        "mode": "worker",
    },
    "r-storm": {"one_per_worker": False, "anew_on_rescale": False},
    "offline": {"alpha": 0.0, "beta": 0.5},
    "online": {"alpha": 0.0},
    "t-storm": {"gamma": 1.0},
    "n-storm": {"mode": "boundary", "delay_s": 0.0},
    "n-storm-plus": {"mode": "warm-cut", "delay_s": 2.0},
}


@pytest.mark.parametrize("name", PAPERS)
def test_the_papers_parameters_are_options_with_their_defaults(name: str) -> None:
    options = options_of(named(name))
    assert {k: options[k] for k in PAPERS[name]} == PAPERS[name]


def test_an_option_is_set_wherever_it_occurs() -> None:
    liu = with_options(named("liu"), {"phi": 7, "theta_pct": 5, "horizon_cycles": 2, "mode": "cut"})
    assert liu.scaler == CpuShare(theta_pct=5.0, phi=7)
    assert liu.horizon_cycles == 2
    assert liu.migrator == Migrate(MigrationMode.CUT)
    ours = with_options(named("adaptive"), {"phi": 9, "theta_pct": 4})
    assert isinstance(ours.forecaster, BestOf)
    assert Trend(phi=9) in ours.forecaster.candidates
    assert options_of(ours)["theta_pct"] == 4
    assert named("liu").scaler == CpuShare()


BAD: dict[str, tuple[dict[str, object], str]] = {
    "unknown": ({"speed": 1}, "policy liu has no option 'speed'; it has at_maximum, "),
    "text": ({"phi": "5"}, "option phi of policy liu must be like 5, not '5'"),
    "truth": ({"theta_pct": True}, "option theta_pct of policy liu must be like 20.0, not True"),
    "no such mode": ({"mode": "magic"}, "option mode of policy liu must be one of restart-app"),
}


@pytest.mark.parametrize("case", BAD)
def test_options_that_cannot_be_are_refused(case: str) -> None:
    options, words = BAD[case]
    with pytest.raises(BadInput) as error:
        with_options(named("liu"), options)
    assert str(error.value).startswith(words)


def test_an_option_without_a_default_takes_numbers() -> None:
    with pytest.raises(BadInput, match="must be a number"):
        with_options(named("adaptive"), {"theta_pct": "small"})


def test_baselines_take_their_shares_from_another_run() -> None:
    topology = chain(Operator("s", 1, source=True))
    run = [
        remembered(seen(topology, {"s": work(rows)}, at_s=at_s), Demand((OperatorDemand("t", "s", 1, (share,)),)))
        for at_s, rows, share in ((10.0, 1000, 20.0), (20.0, 4000, 60.0), (30.0, 2500, 90.0))
    ]
    shares = {name: learned(named(name), run).scaler for name in ("fixed-mean", "fixed-peak", "fixed-equal")}
    assert shares == {
        "fixed-mean": Fixed({("t", "s"): 25.0}),
        "fixed-peak": Fixed({("t", "s"): 40.0}),
        "fixed-equal": Fixed({("t", "s"): 40.0}),
    }
    assert with_options(named("fixed-equal"), {"learns_from": "liu"}).learns_from == "liu"
    with pytest.raises(BadInput, match="liu has no option 'learns_from'"):
        with_options(named("liu"), {"learns_from": "adaptive"})
    with pytest.raises(BadInput, match="liu takes nothing"):
        learned(named("liu"), run)
    with pytest.raises(BadInput, match="at least one cycle"):
        learned(replace(named("fixed-peak")), [])


def test_fixed_shares_by_name() -> None:
    shared = with_shares(named("fixed"), {"t/a": 40.0})
    assert isinstance(shared.scaler, Fixed)
    assert shared.scaler.shares_pct == {("t", "a"): 40.0}
    assert with_shares(named("liu"), {}) is named("liu")
    with pytest.raises(BadInput, match="liu has no fixed shares"):
        with_shares(named("liu"), {"t/a": 40.0})


@pytest.mark.parametrize("lost", [("topologies",), ("nodes", "workers"), ("topologies", "nodes", "workers")])
@pytest.mark.parametrize("name", POLICIES)
def test_where_nothing_runs_or_no_node_is_there_nothing_is_decided(name: str, lost: tuple[str, ...]) -> None:
    numbers = {"spout": work(100), "split": work(100), "count": work(100)}
    full = seen(WORD_COUNT, numbers, cluster=nodes(2, 100.0, seats=8), at_s=10.0)
    now = replace(full, at_s=20.0, metrics=Metrics(()), **dict.fromkeys(lost, ()))  # type: ignore[arg-type]  # by name
    for past in ([], [remembered(full)]):
        plan = decide(POLICIES[name], past, now).plan
        assert (dict(plan.placement.slots), plan.rescales, plan.limits_pct, plan.cuts) == ({}, (), {}, ())
        assert plan.version == now.version
        assert any(r.code is ReasonCode.NOTHING_TO_DECIDE for r in plan.reasons)
