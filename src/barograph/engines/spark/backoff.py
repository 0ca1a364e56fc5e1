"""The wait before a retry: doubled each time, up to a maximum. Used wherever something that failed is tried again."""


def doubled_s(first_s: float, doublings: int, longest_s: float = float("inf")) -> float:
    """``first_s``, doubled so many times, but at most ``longest_s``."""
    return min(first_s * 2.0 ** min(doublings, 30), longest_s)
