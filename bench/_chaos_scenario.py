"""A small cluster with topologies and loads that follow from one seed, as a scenario of the simulator."""

import random

CYCLE_S = 2.0


def scenario_text(chance: random.Random, seconds: float, steady: bool) -> str:
    nodes, seats = chance.randint(3, 5), chance.randint(6, 12)
    text = (
        f'name = "chaos"\ntitle = "chaos"\nduration_s = {seconds + 900}\nepoch_s = {chance.choice((5, 20, 60))}\n'
        f"cycle_s = {CYCLE_S}\nstep_s = 0.5\n"
        f'nodes = [{{name = "n", count = {nodes}, cpu_pct = {chance.choice((100, 200))}, slots = 1, '
        f"seats = {seats}}}]\n"
    )
    for k in range(chance.randint(1, 3)):
        rate = chance.choice((20, 100, 300))
        load = f"constant {rate}"
        if not steady and chance.random() < 0.6:
            at_s = chance.uniform(10, seconds / 2)
            load = f"ramp 0s={rate} {at_s:.0f}s={rate} {at_s + 20:.0f}s={rate * chance.choice((0.2, 2, 4)):g}"
        stateful = ", stateful = true, state_mb = 5" if chance.random() < 0.5 else ""
        text += (
            f'[[topologies]]\nname = "t{k}"\nlevel = {chance.randint(1, 3)}\noperators = [\n'
            f'  {{name = "s", parallelism = 1, load = "{load}", cost_ms = 0.2}},\n'
            f'  {{name = "k", parallelism = {chance.randint(1, 2)}, cost_ms = {chance.choice((0.5, 1, 2))}}},\n'
            f'  {{name = "c", parallelism = {chance.randint(1, 2)}, cost_ms = 1{stateful}}},\n]\n'
            'edges = [{source = "s", target = "k"}, {source = "k", target = "c", grouping = "fields"}]\n'
        )
    return text
