"""What another user of the machine tries. ``main`` is run as that user.

Standard input: a line of JSON for each port or path to try, as it appears. Standard output: what was got, as JSON.
"""

import contextlib
import json
import os
import socket
import struct
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ONE_WAY, RPC, STREAM = 9, 3, 6
READERS = 8
AT_ONCE = 64


def frame(kind: int, body: bytes) -> bytes:
    """A message of Spark's network library."""
    return struct.pack(">QBI", 13 + len(body), kind, len(body)) + body


def credit(reader: int, number: int) -> bytes:
    return frame(ONE_WAY, struct.pack(">iqiii", 2, 0, 0, reader, number))


def acknowledgement(reader: int, last: int) -> bytes:
    return frame(ONE_WAY, struct.pack(">iqii", 4, last, 0, reader))


CLAIMS = b"".join(credit(r, 1) + credit(r, -(1 << 20)) for r in range(READERS))
ENDS = b"".join(acknowledgement(r, 0) + credit(r, -(1 << 31)) for r in range(READERS))
GARBAGE = (
    frame(99, b"x" * 20),
    frame(ONE_WAY, b"x"),
    frame(STREAM, b"/"),
    struct.pack(">QB", 5, ONE_WAY),
    struct.pack(">QBI", (1 << 31) - 1, ONE_WAY, (1 << 31) - 14) + b"x" * 100_000,
    b"\xff" * 64,
)
PAGES = (
    "GET / ", "GET /json/ ", "GET /metrics/json/ ", "GET /environment/ ", "GET /log/ ", "GET /logPage/?x=1 ",
    "POST /app/kill/?id=app-0&terminate=true ", "POST /v1/submissions/create ", "GET /static/webui.css ",
)  # fmt: skip
# A call of Py4J.
JAVA_CALL = b"c\nz:java.lang.System\ncurrentTimeMillis\ne\n"


def talk(address: str, port: int, words: bytes, wait_s: float) -> bytes:
    """What the port answers within the time; raises OSError if it takes no connection."""
    got = b""
    with socket.create_connection((address, port), timeout=2) as connection:
        connection.settimeout(wait_s)
        with contextlib.suppress(OSError):
            connection.sendall(words)
            while len(got) < 1 << 16 and (more := connection.recv(1 << 16)):
                got += more
    return got


def rows_in(answer: bytes) -> int:
    """Messages with rows in what a writer of a shuffle sent."""
    found = at = 0
    while at + 17 <= len(answer):
        size, kind, _ = struct.unpack_from(">QBI", answer, at)
        if kind == ONE_WAY and struct.unpack_from(">i", answer, at + 13)[0] == 1:
            found += 1
        at += max(13, size)
    return found


def try_port(address: str, port: int) -> dict[str, object]:
    found: dict[str, object] = {"port": port, "connected": False, "rows": 0, "http": [], "java": False}
    try:
        found["rows"] = rows_in(talk(address, port, CLAIMS, 1.0))
        found["connected"] = True
        found["rows"] += rows_in(talk(address, port, CLAIMS + ENDS, 0.3))  # type: ignore[operator]
        for words in GARBAGE:
            talk(address, port, words, 0.2)
        found["java"] = talk(address, port, JAVA_CALL, 0.3).startswith(b"!y")
        asked = [talk(address, port, f"{line}HTTP/1.0\r\n\r\n".encode(), 1.0) for line in PAGES[:4]]
        found["http"] = [answer[:12].decode(errors="replace") for answer in asked if answer.startswith(b"HTTP/")]
    except OSError as error:
        found["error"] = str(error)
    return found


def try_page(address: str, port: int, token: str) -> list[str]:
    """The status of each page of a web server."""
    found = []
    for line in PAGES:
        header = f"Authorization: Bearer {token}\r\n" if token else ""
        words = f"{line}HTTP/1.1\r\nHost: {address}\r\n{header}Connection: close\r\n\r\n"
        with contextlib.suppress(OSError):
            answer = talk(address, port, words.encode(), 5.0)
            found.append(answer[:12].decode(errors="replace"))
    return found


def try_call(address: str, port: int, call: str) -> str:
    """What Py4J's port for calls of Python answers. call: the name of the object and its method."""
    with contextlib.suppress(OSError):
        return talk(address, port, ("c\n" + "\n".join(call.split()) + "\ne\n").encode(), 5.0).decode()
    return ""


def try_path(path: str) -> str:
    """What another user may do with a file, folder or socket; empty for nothing."""
    place = Path(path)
    can = []
    with contextlib.suppress(OSError):
        list(place.iterdir())
        can.append("list")
    with contextlib.suppress(OSError):
        place.open("rb").close()
        can.append("read")
    with contextlib.suppress(OSError):
        place.open("ab").close()
        can.append("write")
    with contextlib.suppress(OSError):
        (place / "planted").touch()
        can.append("plant")
    with contextlib.suppress(OSError):
        place.chmod(0o777)
        can.append("open")
    away = place.with_name(f"{place.name}.away")
    with contextlib.suppress(OSError):
        place.rename(away)
        can.append("move")
        away.rename(place)
    with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX) as client:
        client.connect(path)
        can.append("connect")
    return " ".join(can)


def main() -> None:
    results: dict[str, list[object]] = {"ports": [], "pages": [], "paths": [], "calls": []}

    def work(given: dict[str, str]) -> None:
        if "path" in given:
            results["paths"].append([given["path"], try_path(given["path"])])
        elif "call" in given:
            results["calls"].append(try_call(given["address"], int(given["port"]), given["call"]))
        elif "page" in given:
            statuses = try_page(given["address"], int(given["page"]), given["token"])
            results["pages"].append([given["page"], bool(given["token"]), statuses])
        else:
            results["ports"].append(try_port(given["address"], int(given["port"])))

    with ThreadPoolExecutor(AT_ONCE) as pool:
        for done in [pool.submit(work, json.loads(line)) for line in sys.stdin]:
            done.result()
    sys.stdout.write(json.dumps({"uid": os.getuid(), **results}))


if __name__ == "__main__":
    main()
