"""Compiles the jars in Scala while the package is built, so that the wheel carries them."""

import runpy
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

HERE = Path(__file__).resolve().parent


class BuildWithJars(build_py):
    def run(self) -> None:
        # In place: package data is collected from the source tree, also for an editable install.
        runpy.run_path(str(HERE / "jvm" / "compile.py"))["compile_shipped"]()
        super().run()


setup(cmdclass={"build_py": BuildWithJars})
