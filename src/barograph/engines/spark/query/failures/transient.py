"""Which errors pass by themselves: those of files, connections, services and full disks. Pure: it reads texts.

An error is recognised by the names of exceptions and by the operating system's words, not by what a program may write.
"""

import re

# Exceptions of Java, its libraries and Python that say "not now". A class that also stands for wrong input is not here.
_CLASSES = (
    r"java\.io\.(?:IOException|EOFException|InterruptedIOException|SyncFailedException)",
    r"java\.net\.\w+Exception", r"java\.nio\.channels\.\w+Exception", r"java\.nio\.file\.FileSystemException",
    r"java\.util\.concurrent\.TimeoutException", r"javax\.net\.ssl\.\w+Exception",
    r"java\.sql\.(?:SQLException|SQLTransient\w*|SQLRecoverable\w*|SQLTimeout\w*|SQLNonTransientConnection\w*)",
    r"\w*\.?CommunicationsException",
    r"org\.apache\.hadoop\.(?:net|ipc)\.\w+Exception", r"org\.apache\.hadoop\.fs\.FSError",
    r"org\.apache\.hadoop\.hdfs\.\w*Exception",
    r"org\.apache\.kafka\.common\.errors\.(?:Timeout|Network|Disconnect|Retriable|NotLeaderOrFollower|LeaderNotAvailable|"
    r"BrokerNotAvailable|CoordinatorNotAvailable|CoordinatorLoadInProgress|NotCoordinator|NotEnoughReplicas\w*|"
    r"KafkaStorage|UnknownServer|Interrupt)Exception",
    r"(?:software\.amazon\.awssdk|com\.amazonaws)\.\S*(?:SdkClient|ServiceUnavailable|Timeout)\w*Exception",
    r"(?:ConnectionError|ConnectionRefusedError|ConnectionResetError|ConnectionAbortedError|BrokenPipeError|TimeoutError)",
    r"(?:socket\.)?(?:timeout|gaierror)", r"requests\.exceptions\.\w*(?:Connection|Timeout)\w*",
)  # fmt: skip
# What the operating system and services say, whichever exception carries it.
_WORDS = (
    "No space left on device", "Disk quota exceeded", "Too many open files", "Input/output error", "Stale file handle",
    "Connection refused", "Connection timed out", "No route to host", "Network is unreachable", "Host is down",
    "Temporary failure in name resolution", "Read-only file system", "Transport endpoint is not connected",
)  # fmt: skip
_THROWN = re.compile(rf"(?:^|[\s:]){'(?:' + '|'.join(_CLASSES) + ')'}(?=[:\s]|$)")
# The exception itself and its causes; in between there are lines of stacks.
_HEADS = re.compile(r"\n\s*Caused by: ([^\n]*)")


def is_transient(text: str) -> bool:
    """text: an error with or without its stack and its causes."""
    first = text.split("\n\tat ")[0]
    heads = [" ".join(first.split()), *_HEADS.findall(text)]
    return any(_THROWN.search(head) or any(word in head for word in _WORDS) for head in heads)
