"""The script runs as if it had been started itself."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from barograph.engines.spark.cluster.processes import python_environment
from barograph.submit import launcher
from barograph.submit.launcher import SubmitOptions, chosen_policy

SCRIPT = """
import json, sys, threading
import beside
import pyspark.sql.streaming.readwriter as readwriter
class Own:
    pass
if __name__ == "__main__":
    main = sys.modules["__main__"]
    print(json.dumps({
        "argv": sys.argv, "file": __file__, "path": sys.path[0], "beside": beside.word, "module": Own.__module__,
        "own": main.Own is Own, "kept": readwriter.DataStreamWriter.start.__module__,
    }))
    sys.exit(3)
"""


def launched(folder: Path, script: str) -> "subprocess.CompletedProcess[str]":
    (folder / "sub").mkdir()
    (folder / "sub" / "app.py").write_text(script)
    (folder / "sub" / "beside.py").write_text("word = 'found'\n")
    options = json.dumps({"mode": "advise", "policy": "", "usual": "adaptive"})
    return subprocess.run(
        [sys.executable, launcher.__file__, options, "sub/app.py", "--act", "two words"], cwd=folder,
        env=python_environment(), capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip


def test_a_script_finds_its_own_name_arguments_and_folder(tmp_path: Path) -> None:
    done = launched(tmp_path, SCRIPT)
    assert done.returncode == 3, done.stderr
    found = json.loads(done.stdout)
    # pyspark keeps the name of what is wrapped.
    assert found == {
        "argv": ["sub/app.py", "--act", "two words"], "file": "sub/app.py", "path": str(tmp_path / "sub"),
        "beside": "found", "module": "__main__", "own": True, "kept": "pyspark.sql.streaming.readwriter",
    }  # fmt: skip


def test_a_traceback_begins_at_the_script(tmp_path: Path) -> None:
    done = launched(tmp_path, "def inner():\n    raise ValueError('wrong')\n\ninner()\n")
    assert done.returncode == 1
    assert "launcher.py" not in done.stderr
    assert done.stderr.splitlines()[:2] == [
        "Traceback (most recent call last):",
        '  File "sub/app.py", line 4, in <module>',
    ]
    assert done.stderr.splitlines()[-1] == "ValueError: wrong"


def test_what_barograph_refuses_is_one_sentence_with_the_line_of_the_script(tmp_path: Path) -> None:
    script = """
import barograph
from pyspark.sql import SparkSession
barograph.configure(SparkSession.builder.remote("sc://localhost"))
"""
    done = launched(tmp_path, script)
    assert done.returncode == 1
    assert done.stderr.startswith("barograph submit: ") and "Spark Connect" in done.stderr
    assert done.stderr.endswith(" (sub/app.py, line 4)\n") and done.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("flag", "settings", "chosen"),
    [
        ("", {}, "adaptive"),
        ("", {"spark.barograph.policy": "liu"}, "liu"),
        ("even", {"spark.barograph.policy": "liu"}, "even"),
    ],
)
def test_a_flag_wins_over_the_keys_of_the_session_and_these_over_the_rest(
    flag: str, settings: dict[str, str], chosen: str
) -> None:
    assert chosen_policy(SubmitOptions("advise", flag, "adaptive"), settings) == chosen


def test_options_are_those_of_the_command() -> None:
    with pytest.raises(TypeError, match="unexpected"):
        SubmitOptions(mode="advise", policy="", usual="adaptive", other=1)  # type: ignore[call-arg]
