"""The list of writes for v2, on a real kernel with v2: in a small virtual machine, for test machines that have v1.

Where the machine itself has v2, ``GroupsTest.scala`` tests it natively.

qemu (software emulation), a kernel and busybox come from Debian's packages, unpacked into a folder and not installed;
the guest's Python is this one, only the modules it needs. Fetched once, 60 MB, and kept in the cache folder.
"""

import gzip
import json
import os
import shutil
import stat
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import Any

import pytest

from barograph.engines.spark.cluster.java import find_java, spark_jars
from barograph.engines.spark.conf import PLUGIN_JAR
from barograph.engines.spark.folders import cache_folder
from barograph.testing.local_cluster import TESTING_JAR

pytestmark = pytest.mark.slow

NODE = "/sys/fs/cgroup/barograph/run/node-1"
PACKAGES = ("qemu-system-x86", "linux-image-cloud-amd64", "busybox-static")
NOT_NEEDED = ("systemd", "libsystemd", "libpam", "libnss", "udev", "libudev", "initramfs", "klibc", "libklibc", "kmod",
              "linux-base")  # fmt: skip
BOOT_S = 540.0
BOOTS = 3
STALL_S = 0.15  # the guest looks every 0.05 s
GUEST = Path(__file__).with_name("v2_guest.py")
MODULES = ("encodings.ascii", "encodings.latin_1", "encodings.utf_8", "hashlib", "json", "os", "pathlib", "re", "runpy",
           "subprocess", "sys", "threading", "time", "typing", "zipimport")  # fmt: skip
INIT = """#!/bin/busybox sh
/bin/busybox mount -t proc proc /proc
/bin/busybox mount -t sysfs sysfs /sys
/bin/busybox mount -t devtmpfs devtmpfs /dev
/bin/busybox mount -t cgroup2 cgroup2 /sys/fs/cgroup
export PYTHONHASHSEED=0 PYTHONHOME={home} LD_LIBRARY_PATH={libraries}
exec {python} -S /guest.py
"""


def run(*order: str | Path, cwd: Path | None = None) -> str:
    done = subprocess.run(order, cwd=cwd, capture_output=True, text=True, check=False, timeout=600)
    if done.returncode != 0:
        pytest.skip(f"no virtual machine: {order[0]} {order[1]} failed: {(done.stderr or done.stdout).strip()[-300:]}")
    return done.stdout


@pytest.fixture(scope="module")
def machine() -> Path:
    """A folder with qemu, a kernel and busybox."""
    for tool in ("apt-get", "dpkg"):
        if shutil.which(tool) is None:
            pytest.skip(f"no virtual machine: its parts are Debian packages and there is no {tool}")
    folder = cache_folder() / "test-vm"
    if not (folder / "ready").exists():
        shutil.rmtree(folder, ignore_errors=True)
        debs = folder / "debs"
        debs.mkdir(parents=True)
        uris = run("apt-get", "install", "--print-uris", "-y", "--no-install-recommends", *PACKAGES)
        names = {line.split()[1].split("_")[0] for line in uris.splitlines() if line.startswith("'")} | set(PACKAGES)
        run("apt-get", "download", *sorted(n for n in names if not n.startswith(NOT_NEEDED)), cwd=debs)
        for deb in sorted(debs.glob("*.deb")):
            run("dpkg", "-x", deb, folder)
        shutil.rmtree(debs)
        (folder / "ready").touch()
    if not list(folder.glob("boot/vmlinuz-*")):
        pytest.skip("no virtual machine: the kernel's package has no kernel in it")
    return folder


def python_files() -> dict[str, bytes]:
    """This interpreter, the modules the guest needs, and their libraries, by the paths they have here."""
    loaded = "print(*(getattr(m, '__file__', None) or '' for m in sys.modules.values()))"
    modules = {Path(p) for p in run(sys.executable, "-S", "-c", f"import {', '.join(MODULES)}; {loaded}").split()}
    binary = Path(sys.executable).resolve()
    linked = {binary, *(m for m in modules if m.suffix == ".so")}
    libraries = {Path(word) for each in linked for word in run("ldd", each).split() if word.startswith("/")}
    return {str(p): p.read_bytes() for p in {binary, *modules, *libraries}}


def initramfs(files: dict[str, bytes]) -> bytes:
    """The files as a gzipped cpio archive (newc), the form the kernel unpacks; parents come before children."""
    folders = {str(parent) for name in files for parent in Path(name).parents} - {"/"}
    folders |= {"/proc", "/sys", "/dev"}
    entries = [(name, stat.S_IFDIR | 0o755, b"") for name in sorted(folders)]
    entries += [(name, stat.S_IFREG | 0o755, data) for name, data in files.items()]
    out = bytearray()
    for number, (name, mode, data) in enumerate([*entries, ("/TRAILER!!!", 0, b"")], 1):
        path = name[1:].encode() + b"\0"
        fields = (number, mode, 0, 0, 1, 0, len(data), 0, 0, 0, 0, len(path), 0)
        out += b"070701" + b"".join(b"%08X" % field for field in fields) + path
        out += bytes(-len(out) % 4) + data
        out += bytes(-len(out) % 4)
    return gzip.compress(bytes(out), 1)


def boot(machine: Path, orders: dict[str, Any], folder: Path) -> dict[str, Any]:
    python = Path(sys.executable).resolve()
    files = python_files()
    libraries = sorted({str(Path(name).parent) for name in files if ".so" in Path(name).name})
    init = INIT.format(home=sysconfig.get_config_var("prefix"), libraries=":".join(libraries), python=python)
    files |= {
        "/init": init.encode(),
        "/bin/busybox": (machine / "bin/busybox").read_bytes(),
        "/guest.py": GUEST.read_bytes(),
        "/orders.json": json.dumps(orders).encode(),
    }
    archive = folder / "initramfs"
    archive.write_bytes(initramfs(files))
    (kernel,) = machine.glob("boot/vmlinuz-*")
    paths = [str(machine / each) for each in ("usr/lib/x86_64-linux-gnu", "lib/x86_64-linux-gnu")]
    modules = str(machine / "usr/lib/x86_64-linux-gnu/qemu")
    order: list[str | Path] = [
        machine / "usr/bin/qemu-system-x86_64", "-accel", "tcg", "-m", "512", "-smp", "2", "-nographic", "-no-reboot",
        "-nodefaults", "-serial", "stdio", "-L", machine / "usr/share/qemu", "-L", machine / "usr/share/seabios",
        "-kernel", kernel, "-initrd", archive, "-append", "console=ttyS0 quiet panic=-1",
    ]  # fmt: skip
    environment = {**os.environ, "LD_LIBRARY_PATH": ":".join(paths), "QEMU_MODULE_DIR": modules}
    try:
        done = subprocess.run(order, capture_output=True, text=True, env=environment, timeout=BOOT_S, check=False)
    except subprocess.TimeoutExpired as error:
        said = (error.stdout or b"").decode(errors="replace")[-2000:]
        pytest.fail(f"the machine has not reported within {BOOT_S:g} s; its console ends with:\n{said}")
    for line in done.stdout.splitlines():
        if line.startswith("REPORT "):
            found: dict[str, Any] = json.loads(line.removeprefix("REPORT "))
            return found
    pytest.fail(f"the machine ended without a report:\n{done.stdout[:4000]}\n{done.stderr[-1000:]}")


def lists() -> list[dict[str, Any]]:
    """The plug-in's own lists: two turns with limits, and the end of all limits."""
    classpath = ":".join(map(str, (TESTING_JAR, PLUGIN_JAR, *spark_jars())))
    main = "org.apache.spark.barograph.testing.GroupLists"
    found: list[dict[str, Any]] = json.loads(run(find_java().command, "-cp", classpath, main, NODE))
    return found


def test_the_list_limits_threads_on_a_v2_kernel(machine: Path, tmp_path: Path) -> None:
    *turns, end = lists()
    for _ in range(BOOTS):
        found = boot(machine, {"turns": turns, "end": end}, tmp_path)
        print(json.dumps(found))  # noqa: T201  # shown when the test fails
        assert "error" not in found, found["error"]
        assert found["type"] == "domain threaded"
        assert found["held"] == [True, True]
        assert found["back"], "threads did not go back to the node's group"
        assert found["left"] == []
        stalled_s = max(turn["stalled_s"] for turn in found["turns"])
        if stalled_s < STALL_S:
            break
    else:
        # The guest takes time in which the host did not run it for time its threads ran, and they pay for it later.
        pytest.skip(f"all writes were taken, but the host let the guest stand for {stalled_s:.1f} s: no usage to judge")
    for turn, quotas_us in zip(found["turns"], ((2_000, 4_000), (5_000, 1_000)), strict=True):
        used = 0
        for group, quota_us in zip(turns[0]["groups"], quotas_us, strict=True):
            moved = turn[group]
            assert moved["nr_throttled"] >= 20
            assert moved["throttled_usec"] > 0
            # A limit that did not hold would give several times as much; the kernel hands quota out in slices.
            assert 0.3 * moved["nr_throttled"] * quota_us < moved["usage_usec"]
            assert moved["usage_usec"] < 2.0 * (moved["nr_periods"] + 2) * quota_us
            used += moved["usage_usec"]
        assert turn["other_usec"] > 0.2 * used, "the thread beside the instances starves"
