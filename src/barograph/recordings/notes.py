"""What was found in a cluster file that is not as it should be, and how it is treated: one sentence each."""

from collections.abc import Sequence

_NAMED = 5  # of the places that are alike; a sentence with hundreds of names helps no reader


class Notes:
    """Gathers the notes of one cluster. lenient: the file is a recording, so oddities become notes, not refusals."""

    def __init__(self, lenient: bool) -> None:
        self.lenient = lenient
        self.priorities = ""
        self._skipped: dict[str, list[str]] = {}
        self._sentences: list[str] = []
        self._ignored: dict[str, list[str]] = {}

    def add(self, sentence: str) -> None:
        self._sentences.append(sentence)

    def skip(self, topology: str, why: str) -> None:
        """The topology is not planned. why: what all topologies skipped for this reason have in common."""
        self._skipped.setdefault(why, []).append(topology)

    def ignore(self, key: str, here: str) -> None:
        """A key that no part of the format has."""
        self._ignored.setdefault(key, []).append(here)

    def sentences(self) -> tuple[str, ...]:
        """Skipped topologies stand first, since they change most."""
        found = [self.priorities] if self.priorities else []
        found += [f"topologies {why} are skipped: {', '.join(names)}" for why, names in self._skipped.items()]
        found += self._sentences
        found += [f"the unknown key {key!r} is ignored: {some(where)}" for key, where in self._ignored.items()]
        return tuple(found)


def some(names: Sequence[str]) -> str:
    """The first few names, and how many more there are."""
    more = len(names) - _NAMED
    return ", ".join(names[:_NAMED]) + (f" and {more:,} more" if more > 0 else "")
