"""Which errors say that another driver has the query's checkpoint. Pure: it reads texts.

Such a query must not be restarted: two drivers would take the checkpoint from each other in turn.
"""

import re

# Raised by the plug-in (jvm/lease/Lease.scala); their messages are whole sentences.
_LEASE = re.compile(r"lease\.(?:LeaseRefused|LeaseLost): ([^\n]+)")
# The same sentences, where the class is not told.
_SENTENCE = re.compile(r"the (?:checkpoint \S+ (?:is in use by|was taken over by)|lease on the checkpoint) [^\n]+")
# Spark's own errors when a log has an entry already; without a lease it is all there is to know.
_LOG = ("CONCURRENT_STREAM_LOG_UPDATE", "Multiple streaming queries are concurrently using")


def other_owner(text: str) -> str:
    """What another driver has done, in one sentence; empty if the error says nothing of that kind."""
    if found := _LEASE.search(text):
        return found[1].strip()
    if found := re.search(_SENTENCE, text):
        return found[0].partition(" SQLSTATE")[0].strip()
    if any(sign in text for sign in _LOG):
        return "another query writes to the same checkpoint, one without a lease: stop it, or use another checkpoint"
    return ""
