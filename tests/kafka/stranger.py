"""What a program does to a broker's ports, in Kafka's own protocol. ``main`` may run as any user.

Standard input, as JSON: broker and controllers ("host:port"), topic, cluster (the id), login (user and password, or
null), and the row to write. Standard output, as JSON: request -> what came back, as text; null where nothing did.
"""

import contextlib
import json
import os
import socket
import struct
import sys

WAIT_S = 10.0
FLEXIBLE = {"describe the quorum", "vote for another node", "join as a broker"}


def text(value: str) -> bytes:
    return struct.pack(">h", len(value)) + value.encode()


def compact(value: str) -> bytes:
    return bytes([len(value) + 1]) + value.encode()


def varint(value: int) -> bytes:
    """Zigzag, for small numbers."""
    rest, found = (value << 1) ^ (value >> 31), b""
    while rest > 0x7F:
        found, rest = found + bytes([rest & 0x7F | 0x80]), rest >> 7
    return found + bytes([rest])


def crc32c(data: bytes) -> int:
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def batch(row: str) -> bytes:
    """One record without a key."""
    value = row.encode()
    record = b"\0" + varint(0) + varint(0) + varint(-1) + varint(len(value)) + value + varint(0)
    records = varint(len(record)) + record
    body = struct.pack(">hiqqqhii", 0, 0, 0, 0, -1, -1, -1, 1) + records
    return struct.pack(">qiibI", 0, 9 + len(body), -1, 2, crc32c(body)) + body


def of_broker(topic: str, row: str) -> dict[str, tuple[int, int, bytes]]:
    """What is asked -> the number of the request, its version, its body."""
    one = struct.pack(">i", 1)
    records = batch(row)
    named = one + text(topic)
    written = struct.pack(">hhi", -1, -1, 5000) + named + one + struct.pack(">ii", 0, len(records)) + records
    read = struct.pack(">iiiib", -1, 500, 1, 1 << 20, 0) + named + one + struct.pack(">iqi", 0, 0, 1 << 20)
    return {"make the topic": (3, 1, named), "write a row": (0, 3, written), "read rows": (1, 4, read)}


def of_controllers(cluster: str) -> dict[str, tuple[int, int, bytes]]:
    metadata = compact("__cluster_metadata")
    quorum = b"\x02" + metadata + b"\x02" + struct.pack(">i", 0) + b"\0\0\0"
    vote = b"\0\x02" + metadata + b"\x02" + struct.pack(">iiiiq", 0, 1, 2, 0, 0) + b"\0\0\0"
    listener = compact("BROKER") + compact("127.0.0.1") + struct.pack(">Hh", 1, 0) + b"\0"
    broker = struct.pack(">i", 2) + compact(cluster) + bytes(range(16)) + b"\x02" + listener + b"\x01\0\0"
    return {
        "describe the quorum": (55, 0, quorum),
        "vote for another node": (52, 0, vote),
        "join as a broker": (62, 0, broker),
    }


def asked(connection: socket.socket, key: int, version: int, body: bytes, flexible: bool = False) -> bytes | None:
    """The answer without its header; None where there is none."""
    number = 7
    head = struct.pack(">hhi", key, version, number) + text("stranger") + (b"\0" if flexible else b"")
    connection.sendall(struct.pack(">i", len(head) + len(body)) + head + body)
    got = b""
    with contextlib.suppress(OSError):
        while len(got) < 4 or len(got) < 4 + struct.unpack_from(">i", got)[0]:
            more = connection.recv(1 << 16)
            if not more:
                return None
            got += more
        if struct.unpack_from(">i", got, 4)[0] == number:
            return got[8:]
    return None


def logged_in(connection: socket.socket, user: str, password: str) -> bool:
    if asked(connection, 17, 1, text("PLAIN")) is None:
        return False
    words = f"\0{user}\0{password}".encode()
    answer = asked(connection, 36, 0, struct.pack(">i", len(words)) + words)
    return answer is not None and struct.unpack_from(">h", answer)[0] == 0


def tried(address: str, login: tuple[str, str] | None, what: str, request: tuple[int, int, bytes]) -> str | None:
    """On a connection of its own, since a refusal ends it."""
    host, port = address.split(":")
    with contextlib.suppress(OSError), socket.create_connection((host, int(port)), WAIT_S) as connection:
        if login is None or logged_in(connection, *login):
            answer = asked(connection, *request, flexible=what in FLEXIBLE)
            return None if answer is None else answer.decode("latin-1")
    return None


def main() -> None:
    given = json.load(sys.stdin)
    of_each = {
        given["broker"]: of_broker(given["topic"], given["row"]),
        given["controllers"]: of_controllers(given["cluster"]),
    }
    found = {
        what: tried(address, given["login"], what, request)
        for address, requests in of_each.items()
        for what, request in requests.items()
    }
    sys.stdout.write(json.dumps({"uid": os.getuid(), "answers": found}))


if __name__ == "__main__":
    main()
