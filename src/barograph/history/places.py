"""Where a history is: a folder of this machine, or one of an object store (s3) or of HDFS that is named by an address.

    seen                                                          a folder of this machine
    s3://bucket/seen                                              with AWS's own settings for credentials and region
    s3://bucket/seen?region=eu-west-1&endpoint_override=HOST:PORT&scheme=http     any other service that speaks s3
    hdfs://HOST:PORT/seen                                         where libhdfs and Hadoop's jars are found

``RemotePath`` has the few methods of a Path that a history needs. It knows nothing of what the files hold.
"""

import functools
import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import parse_qsl, unquote, urlsplit

import pyarrow as pa
import pyarrow.fs

from barograph.model import BadInput
from barograph.model.checks import require

Found = TypeVar("Found")

fs: Any = pyarrow.fs  # its types do not say what it exports
Store = Any  # a pyarrow.fs.FileSystem

_ADDRESS = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):/")
_S3_OPTIONS = ("endpoint_override", "region", "scheme")
_ENDPOINTS = ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL")
_REGIONS = ("AWS_REGION", "AWS_DEFAULT_REGION")
# A cycle waits for its record, so a service that does not answer is given up soon; its entries are kept meanwhile.
_CONNECT_S, _ANSWER_S, _ATTEMPTS = 3.0, 10.0, 2
_REFUSED = re.compile(
    r"ACCESS_DENIED|INVALID_ACCESS_KEY_ID|SIGNATURE_DOES_NOT_MATCH|INVALID_CLIENT_TOKEN_ID|status 403"
)
_AWS = re.compile(r"AWS Error (\w+).*?(?::\s*(.*))?$", re.DOTALL)


class RemoteFailed(OSError):  # noqa: N818  # as StartFailed and RunFailed
    """A store did not do what was asked; one sentence."""


@dataclass(frozen=True, slots=True, order=True)
class RemotePath:
    """A folder or a file. address: scheme and host. path: as the store has it, with the bucket. options: as given."""

    address: str
    path: str
    options: str = ""

    def __str__(self) -> str:
        return f"{self.address}{self._shown}" + (f"?{self.options}" if self.options else "")

    def __truediv__(self, name: str) -> "RemotePath":
        return RemotePath(self.address, f"{self.path}/{name}", self.options)

    @property
    def name(self) -> str:
        return self.path.rpartition("/")[2]

    @property
    def parent(self) -> "RemotePath":
        return RemotePath(self.address, self.path.rpartition("/")[0], self.options)

    @property
    def _shown(self) -> str:
        return self.path.removeprefix(self.address.partition("://")[2])

    def names(self) -> list[str]:
        """Of the files in this folder; none where there is no such folder."""

        def look(store: Store) -> list[str]:
            found = store.get_file_info(fs.FileSelector(self.path, allow_not_found=True))
            return [info.base_name for info in found if info.type == fs.FileType.File]

        return self._ask(look)

    def exists(self) -> bool:
        return self._ask(lambda store: bool(store.get_file_info(self.path).type != fs.FileType.NotFound))

    def size(self) -> int:
        return self._ask(lambda store: int(store.get_file_info(self.path).size or 0))

    def open(self) -> Any:
        """A file that can be read from any position. FileNotFoundError where there is none."""
        return self._ask(lambda store: store.open_input_file(self.path))

    def read(self) -> bytes:
        def fetch(store: Store) -> bytes:
            with store.open_input_file(self.path) as file:
                return bytes(file.read())

        return self._ask(fetch)

    def write(self, content: bytes) -> None:
        """The file appears whole or not at all. An object does by itself; a file of HDFS gets its name at the end."""

        def put(store: Store) -> None:
            if isinstance(store, fs.S3FileSystem):
                _fill(store, self.path, content)
                return
            store.create_dir(self.parent.path, recursive=True)
            temporary = f"{self.parent.path}/.{self.name}.{os.getpid()}"
            _fill(store, temporary, content)
            store.move(temporary, self.path)

        self._ask(put)

    def unlink(self, missing_ok: bool = False) -> None:
        try:
            self._ask(lambda store: store.delete_file(self.path))
        except FileNotFoundError:
            if not missing_ok:
                raise

    def require_there(self) -> None:
        """BadInput, in one sentence, where its store cannot be used from here."""
        try:
            self.names()  # whether it may be read at all
            if self.address.startswith("s3:") and not RemotePath(self.address, self._bucket, self.options).exists():
                raise RemoteFailed(f"there is no bucket {self._bucket}: create it, or name another")
        except OSError as error:
            raise BadInput(f"the history {str(self)!r} cannot be used: {error}") from None

    @property
    def _bucket(self) -> str:
        return self.path.partition("/")[0]

    def _ask(self, what: Callable[[Store], Found]) -> Found:
        try:
            return what(_store(self.address, self.options))
        except FileNotFoundError:
            raise
        except (OSError, ValueError, pa.ArrowException) as error:
            raise RemoteFailed(self._sentence(str(error))) from None

    def _sentence(self, text: str) -> str:
        """Arrow's own is long and names operations of the service."""
        if "NO_SUCH_BUCKET" in text or "Bucket '" in text:
            return f"there is no bucket {self._bucket}: create it, or name another"
        if _REFUSED.search(text):
            return (
                "the service refuses these credentials: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or "
                "AWS_PROFILE, of a user who may read and write it"
            )
        if "NETWORK_CONNECTION" in text or "curlCode" in text:
            return "the service cannot be reached: check its address (endpoint_override), the region and the network"
        found = _AWS.search(text)
        short = text if found is None else f"{found[1]}: {found[2] or ''}"
        return " ".join(short.split())[:200]


HistoryPath = Path | RemotePath


def place_of(text: str | HistoryPath) -> HistoryPath:
    """BadInput for an address that cannot be one of a history. Nothing is asked over the network."""
    if not isinstance(text, str):
        return text
    match = _ADDRESS.match(text)
    if match is None:
        return Path(text)
    scheme = match[1].lower()
    if scheme == "file":
        return Path(unquote(urlsplit(text).path))
    if scheme not in ("s3", "hdfs"):
        raise BadInput(f"a history can be in a folder, at s3://BUCKET/FOLDER or hdfs://HOST/FOLDER, not at {text!r}")
    parts = urlsplit(text)
    folder = unquote(parts.path).strip("/")
    if "@" in parts.netloc:
        raise BadInput(
            "the address of a history is shown and logged: give credentials by AWS_ACCESS_KEY_ID and "
            "AWS_SECRET_ACCESS_KEY instead"
        )
    if scheme == "hdfs":
        require(not parts.query and bool(folder), f"{text!r} is no folder of HDFS: write hdfs://HOST:PORT/FOLDER")
        found = RemotePath(f"hdfs://{parts.netloc}", f"/{folder}")
        _store(found.address, "")  # whether there is a libhdfs is known at once
        return found
    require(bool(parts.netloc), f"{text!r} names no bucket: write s3://BUCKET/FOLDER")
    given = dict(parse_qsl(parts.query))
    unknown = sorted(set(given) - set(_S3_OPTIONS))
    require(not unknown, f"{text!r}: {', '.join(unknown)} is unknown; there are {', '.join(_S3_OPTIONS)}")
    return RemotePath("s3://", "/".join(filter(None, (parts.netloc, folder))), parts.query)


def absolute(text: str) -> str:
    """As another process finds it, wherever it runs."""
    place = place_of(text)
    return str(place.absolute()) if isinstance(place, Path) else str(place)


def require_usable(text: str) -> None:
    """BadInput where a history cannot be kept there; asks the store."""
    place = place_of(text)
    if isinstance(place, RemotePath):
        place.require_there()


@functools.lru_cache
def _store(address: str, options: str) -> Store:
    if address.startswith("hdfs:"):
        return _hadoop(address)
    given = dict(parse_qsl(options))
    where = {key: given[key] for key in ("endpoint_override", "scheme", "region") if key in given}
    if "region" not in where and ("endpoint_override" in where or any(map(os.environ.get, _ENDPOINTS))):
        where["region"] = next(filter(None, map(os.environ.get, _REGIONS)), "us-east-1")  # else Amazon would be asked
    retry = fs.AwsStandardS3RetryStrategy(max_attempts=_ATTEMPTS)
    return fs.S3FileSystem(connect_timeout=_CONNECT_S, request_timeout=_ANSWER_S, retry_strategy=retry, **where)


def _hadoop(address: str) -> Store:
    parts = urlsplit(address)
    try:
        return fs.HadoopFileSystem(parts.hostname or "default", parts.port or 0)
    except OSError as error:
        if "libhdfs" in str(error) or "libjvm" in str(error):
            raise BadInput(
                "a history on HDFS needs libhdfs, which is not found: set ARROW_LIBHDFS_DIR to its folder, JAVA_HOME, "
                "and CLASSPATH to what 'hadoop classpath --glob' prints"
            ) from None
        raise BadInput(f"{address} cannot be reached: {' '.join(str(error).split())[:200]}") from None


def _fill(store: Store, path: str, content: bytes) -> None:
    with store.open_output_stream(path) as file:
        file.write(content)
