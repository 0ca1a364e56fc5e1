"""An s3 service on this machine for tests: moto's server on a free port, with a bucket for each test."""

import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager

from moto.server import ThreadedMotoServer

_UNCHECKED = 10_000_000


class S3Service:
    """It keeps its objects while it is down. It checks no credentials until it is told to."""

    def __init__(self) -> None:
        self._server = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
        self._server.start()
        self.host, self.port = self._server.get_host_and_port()

    def place(self, bucket: str, folder: str = "seen", more: str = "") -> str:
        return f"s3://{bucket}/{folder}?endpoint_override={self.host}:{self.port}&scheme=http{more}"

    def make_bucket(self, name: str) -> None:
        self._ask("PUT", f"/{name}")

    def check_credentials(self, on: bool) -> None:
        self._ask("POST", "/moto-api/reset-auth", b"0" if on else str(_UNCHECKED).encode())

    def stop(self) -> None:
        self._server.stop()

    def start(self) -> None:
        self._server = ThreadedMotoServer(self.host, self.port, verbose=False)
        self._server.start()

    def _ask(self, method: str, path: str, body: bytes | None = None) -> None:
        request = urllib.request.Request(
            f"http://{self.host}:{self.port}{path}", body, method=method, headers={"Content-Type": "text/plain"}
        )
        with urllib.request.urlopen(request, timeout=20):
            pass


@contextmanager
def s3_service() -> Iterator[S3Service]:
    service = S3Service()
    try:
        yield service
    finally:
        service.stop()
