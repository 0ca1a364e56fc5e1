"""Which slot each instance has. A placement is a value: it says nothing of how to get there."""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from barograph.model.cluster import Slot
from barograph.model.topology import Instance


@dataclass(frozen=True, slots=True)
class Move:
    """One instance goes from one slot to another; from None when it starts, to None when it ends."""

    instance: Instance
    source: Slot | None
    target: Slot | None

    def __str__(self) -> str:
        return f"{self.instance}: {self.source or 'nowhere'} -> {self.target or 'nowhere'}"


@dataclass(frozen=True, slots=True)
class Placement:
    """Instance -> slot. Instances that are missing are not placed."""

    slots: Mapping[Instance, Slot] = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "slots", MappingProxyType(dict(self.slots)))

    def __getitem__(self, instance: Instance) -> Slot:
        return self.slots[instance]

    def __contains__(self, instance: object) -> bool:
        return instance in self.slots

    def __iter__(self) -> Iterator[Instance]:
        return iter(self.slots)

    def __len__(self) -> int:
        return len(self.slots)

    def __hash__(self) -> int:
        return hash(frozenset(self.slots.items()))

    def get(self, instance: Instance) -> Slot | None:
        return self.slots.get(instance)

    def moves_to(self, other: "Placement") -> tuple[Move, ...]:
        """What changes from here to there, in the order of instances."""
        changed = [i for i in {**self.slots, **other.slots} if self.get(i) != other.get(i)]
        return tuple(Move(i, self.get(i), other.get(i)) for i in sorted(changed))

    def of_topology(self, topology: str) -> "Placement":
        return Placement({i: s for i, s in self.slots.items() if i.topology == topology})

    def by_slot(self) -> dict[Slot, list[Instance]]:
        found: dict[Slot, list[Instance]] = defaultdict(list)
        for instance, slot in self.slots.items():
            found[slot].append(instance)
        return dict(found)
