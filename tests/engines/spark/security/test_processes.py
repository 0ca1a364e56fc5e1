"""Which role a process has, by its program, its main class and its parent."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from barograph.engines.spark.security import processes
from barograph.engines.spark.security.processes import own_processes

SUBMIT = "org.apache.spark.deploy.SparkSubmit"
EXECUTOR = "org.apache.spark.executor.CoarseGrainedExecutorBackend"
# pid -> program, command line, parent
MACHINE: Mapping[int, tuple[str, str, int]] = {
    10: ("python3.11", "python app.py", 1),
    11: ("java", f"java -cp barograph-plugin-1.jar {SUBMIT} pyspark-shell", 10),
    12: ("bash", "bash", 1),
    13: ("java", f"java {SUBMIT} app.py", 12),
    14: ("python3.11", "python app.py", 13),
    15: ("java", f"java {EXECUTOR} --executor-id 0", 1),
    16: ("python3.11", "python3 -m pyspark.daemon", 15),
    17: ("java", "java -cp x kafka.Kafka server.properties", 10),
    18: ("java", "java org.apache.spark.barograph.source.TopicFeed feed.properties", 10),
    19: ("python3.11", "python other.py", 12),
    20: ("grep", "grep kafka.Kafka", 12),
    21: ("python3.11", "python controller.py", 10),
    22: ("java", "java org.apache.spark.executor.YarnCoarseGrainedExecutorBackend --executor-id 1", 1),
    23: ("python3.11", "python3 -m pyspark.daemon", 22),
    24: ("java", "java org.apache.spark.scheduler.cluster.k8s.KubernetesExecutorBackend --executor-id 1", 1),
    25: ("java", "java org.apache.spark.deploy.yarn.ExecutorLauncher --arg host:1", 1),
    26: ("java", "java org.apache.spark.deploy.yarn.ApplicationMaster --class Main", 1),
    27: ("python3.11", "python3 app.py", 26),
    28: ("java", "java org.apache.spark.deploy.worker.DriverWrapper spark://host:1 app.jar Main", 1),
}


def test_every_role_is_known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "_PROC", tmp_path)
    for pid, (program, command, parent) in MACHINE.items():
        entry = tmp_path / str(pid)
        (entry / "fd").mkdir(parents=True)
        (entry / "cmdline").write_bytes(b"\0".join(word.encode() for word in command.split()) + b"\0")
        (entry / "stat").write_text(f"{pid} (a) b) S {parent} 0")
        (entry / "exe").symlink_to(f"/usr/bin/{program}")
        (entry / "cwd").symlink_to("/srv")
    found = {process.pid: process for process in own_processes()}
    assert {pid: process.role for pid, process in found.items()} == {
        10: "Python of driver", 11: "driver", 13: "driver", 14: "Python of driver", 15: "executor",
        16: "Python of executor", 17: "broker", 18: "feed", 22: "executor", 23: "Python of executor", 24: "executor",
        25: "executor launcher", 26: "driver", 27: "Python of driver", 28: "driver",
    }  # fmt: skip
    assert [pid for pid, process in found.items() if process.guarded] == [11]
    assert found[17].folder == Path("/srv")
