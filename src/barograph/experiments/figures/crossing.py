"""Rows sent between workers and between nodes in a cycle, from measured traffic and the placement. Pure."""

from dataclasses import dataclass

import numpy as np

from barograph.model import EdgeTraffic, Instance, Slot, Snapshot


@dataclass(frozen=True, slots=True)
class Crossed:
    """Rows. sent: between all instances whose slots are known. A row between nodes is also one between workers."""

    sent: float = 0.0
    between_workers: float = 0.0
    between_nodes: float = 0.0

    def __add__(self, other: "Crossed") -> "Crossed":
        return Crossed(
            self.sent + other.sent,
            self.between_workers + other.between_workers,
            self.between_nodes + other.between_nodes,
        )

    def times(self, part: float) -> "Crossed":
        return Crossed(self.sent * part, self.between_workers * part, self.between_nodes * part)


def crossed(now: Snapshot) -> Crossed:
    """Of all edges of all topologies."""
    return sum((_edge(now, edge) for edge in now.traffic), Crossed())


def _edge(now: Snapshot, edge: EdgeTraffic) -> Crossed:
    senders, takers = edge.rows.shape
    here = [now.placement.get(Instance(edge.topology, edge.source, i)) for i in range(senders)]
    there = [now.placement.get(Instance(edge.topology, edge.target, j)) for j in range(takers)]
    slots = {slot: number for number, slot in enumerate({*here, *there} - {None})}
    nodes = {name: number for number, name in enumerate(sorted({slot.node for slot in slots if slot is not None}))}

    def numbers(of: list[Slot | None], by_node: bool) -> "np.ndarray[tuple[int], np.dtype[np.int64]]":
        return np.array([-1 if s is None else nodes[s.node] if by_node else slots[s] for s in of], dtype=np.int64)

    known = (numbers(here, False) >= 0)[:, None] & (numbers(there, False) >= 0)[None, :]
    other = {by: numbers(here, by)[:, None] != numbers(there, by)[None, :] for by in (False, True)}
    return Crossed(
        float(edge.rows[known].sum()),
        float(edge.rows[known & other[False]].sum()),
        float(edge.rows[known & other[True]].sum()),
    )
