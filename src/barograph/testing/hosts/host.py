"""One host: a process that holds namespaces of its own, and programs that are run in them.

It has its own addresses, host name, process ids, /tmp, and a folder (ROOM) with what it was given under paths of its
own. What it must not see is covered. When the holding process ends, the kernel ends every process of the host and
removes its mounts and links: nothing is left on the machine.
"""

import os
import shlex
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from barograph.engines.spark.cluster.processes import Process, identify, send, wait_gone
from barograph.guardian import Guarded

ROOM = Path("/srv")  # part of every Linux system, and hardly ever used; it is covered in the host only
SHARED = ROOM / "shared"
_START_S = 20.0


@dataclass(frozen=True, slots=True)
class Sight:
    """What a host sees of the machine's files. given: path in the host -> the machine's path; below ROOM. kept: what
    stays where it is although /tmp is another one. covered: folders that are empty there."""

    given: Mapping[Path, Path] = field(default_factory=dict)
    kept: Sequence[Path] = ()
    covered: Sequence[Path] = ()


class Host:
    """Made by ``open_hosts``. folder: of its own files on the machine; its /tmp is ``tmp`` in it."""

    def __init__(self, name: str, address: str, home: Guarded) -> None:
        self.name, self.address, self._home = name, address, home
        self.folder = home.folder / name
        self.folder.mkdir()
        (self.folder / "tmp").mkdir()
        (self.folder / "tmp").chmod(0o1777)
        log = (home.folder / f"{name}-holder.log").open("wb")
        outer = subprocess.Popen(
            ["unshare", "--net", "--mount", "--uts", "--ipc", "--pid", "--fork", "--kill-child", "--mount-proc",
             "sleep", "infinity"],
            env={"PATH": os.environ.get("PATH", ""), **home.mark}, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
            start_new_session=True,
        )  # fmt: skip
        log.close()
        self._outer = outer
        self.holder = self._inner(outer)

    def _inner(self, outer: subprocess.Popen[bytes]) -> Process:
        """The first process of the host, once its namespaces are complete: only then it is ``sleep``."""
        deadline = time.monotonic() + _START_S
        children = Path(f"/proc/{outer.pid}/task/{outer.pid}/children")
        while time.monotonic() < deadline and outer.poll() is None:
            for pid in children.read_text().split():
                if Path(f"/proc/{pid}/comm").read_text().strip() == "sleep" and (found := identify(int(pid))):
                    return found
            time.sleep(0.01)
        raise OSError(f"{self.name} did not start: unshare ended with {outer.poll()}")

    def prepare(self, sight: Sight, names: Mapping[str, str]) -> None:
        """Mount what it sees. names: host name -> address, for its /etc/hosts."""
        table = self.folder / "hosts"
        table.write_text("127.0.0.1 localhost\n" + "".join(f"{a} {n}\n" for n, a in names.items()))
        tmp, new_tmp = Path("/tmp"), ROOM / ".tmp"  # it is the host's own
        lines = ["set -e", "mount --make-rprivate /", f"mount -t tmpfs tmpfs {ROOM}", f"mkdir {new_tmp}"]
        lines.append(f"mount --bind {_q(self.folder / 'tmp')} {new_tmp}")
        for inside, outside in {SHARED: self._home.folder / "shared", **sight.given}.items():
            lines += [f"mkdir -p {_q(inside)}", f"mount --bind {_q(outside)} {_q(inside)}"]
        lines.append(f"mount --bind {_q(table)} /etc/hosts")
        for path in sight.kept:
            if path.is_relative_to(tmp):
                again = new_tmp / path.relative_to(tmp)
                lines += [f"mkdir -p {_q(again)}", f"mount --bind {_q(path)} {_q(again)}"]
        lines += [f"mount -t tmpfs tmpfs {_q(path)}" for path in sight.covered]
        lines += [f"mount --rbind {new_tmp} {tmp}", f"hostname {self.name}"]
        self.run(["sh", "-c", "\n".join(lines)])

    def command(self, arguments: Sequence[str]) -> list[str]:
        """The same command, in the host."""
        return ["nsenter", "-t", str(self.holder.pid), "-a", "-w/", "--", *arguments]

    def environment(self, more: Mapping[str, str] | None = None) -> dict[str, str]:
        known = {name: os.environ[name] for name in ("PATH", "HOME", "LANG") if name in os.environ}
        return {**known, **self._home.mark, **(more or {})}

    def run(self, arguments: Sequence[str], timeout_s: float = 60.0) -> str:
        """Its standard output. Raises OSError with what it wrote if it fails."""
        done = subprocess.run(
            self.command(arguments), env=self.environment(), capture_output=True, text=True, timeout=timeout_s,
            stdin=subprocess.DEVNULL, check=False,
        )  # fmt: skip
        if done.returncode != 0:
            raise OSError(f"{arguments[0]} failed on {self.name}: {done.stderr.strip()}")
        return done.stdout

    def start(
        self, arguments: Sequence[str], log: Path, more: Mapping[str, str] | None = None, pipes: bool = False
    ) -> subprocess.Popen[str]:
        """A program in the host. log: on the machine. pipes: its standard input and output are pipes to the caller."""
        with log.open("ab") as out:
            return subprocess.Popen(
                self.command(arguments), env=self.environment(more), stderr=out, text=True,
                stdin=subprocess.PIPE if pipes else subprocess.DEVNULL, stdout=subprocess.PIPE if pipes else out,
                start_new_session=True,
            )  # fmt: skip

    def lose(self) -> None:
        """End it with everything on it, at once and for good, as if its power failed."""
        send(self.holder, signal.SIGKILL)
        wait_gone(self.holder, 10.0)
        self._outer.wait()


def _q(path: Path) -> str:
    return shlex.quote(str(path))
