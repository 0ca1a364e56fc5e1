"""Compiles the Scala plug-in while the package is built, so that the wheel carries it."""

import runpy
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

HERE = Path(__file__).resolve().parent
JAR = Path("barograph/engines/spark/jars/barograph-plugin.jar")


class BuildWithPlugin(build_py):
    def run(self) -> None:
        compile_plugin = runpy.run_path(str(HERE / "jvm" / "compile.py"))["compile_plugin"]
        # In place first: package data is collected from the source tree, also for an editable install.
        compile_plugin(HERE / "src" / JAR)
        super().run()


setup(cmdclass={"build_py": BuildWithPlugin})
