# `make run` and `make test` need nothing but Python 3.11 or newer: they make their own .venv.
PYTHON ?= python3
PY := .venv/bin/python
# Some machines forbid Python to keep what it has compiled: each start would then take ten seconds.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: run reproduce test check docs verify wheel-check bench clean help

help:
	@echo "make run        run the main scenario (scenarios/moons.yaml)"
	@echo "make reproduce  all of the paper's experiments, at full size (about half an hour on two cores)"
	@echo "make test       the test suite"
	@echo "make check      what CI runs: format, lint, types, tests"
	@echo "make docs       the documentation, as a site in build/docs"
	@echo "make verify     slow statistical verification"
	@echo "make wheel-check  the package in an environment of its own"
	@echo "make bench      speed, as ratios measured in one run"
	@echo "make clean      remove .venv, caches and results"

# Python compiles what it imports when it first does so; all of it would take as long as the rest.
PIP := $(PY) -m pip install --quiet --disable-pip-version-check --no-compile --constraint constraints.txt

.venv/bin/python:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed")'
	$(PYTHON) -m venv .venv

# What a run needs; tools for tests and documentation come when they are wanted, and bring it along.
.venv/.run: pyproject.toml setup.py constraints.txt | .venv/bin/python
	$(PIP) --editable .
	@touch $@

.venv/.installed: pyproject.toml setup.py constraints.txt | .venv/bin/python
	$(PIP) --editable '.[dev]'
	@touch .venv/.run $@

run: .venv/.run
	$(PY) -m simulator run scenarios/moons.yaml

reproduce: .venv/.run
	$(PIP) --editable '.[privacy]'
	$(PY) -m reproduction all

test: .venv/.installed
	$(PY) -m pytest -n 2 --dist loadfile --no-loadscope-reorder

check: .venv/.installed
	$(PY) -m ruff format --check .
	$(PY) -m ruff check .
	$(PY) -m mypy
	$(PY) -m pytest -n 2 --dist loadfile --no-loadscope-reorder

verify: .venv/.installed .venv/.docs
	$(PY) -m pytest -n 2 -m verify

.venv/.docs: pyproject.toml setup.py constraints.txt | .venv/bin/python
	$(PIP) --editable '.[docs]'
	@touch .venv/.run $@

# Warnings are errors.
docs: .venv/.docs
	$(PY) -m sphinx -W --keep-going -q -b html docs build/docs
	@echo "build/docs/index.html"

# The package as others get it: in an environment of its own and an empty folder.
wheel-check:
	rm -rf build/wheel-check && mkdir -p build/wheel-check/empty
	$(PYTHON) -m venv build/wheel-check/venv
	build/wheel-check/venv/bin/pip install --quiet --disable-pip-version-check --constraint constraints.txt .
	cd build/wheel-check/empty && ../venv/bin/murmuration run scenarios/moons.yaml --set stop.time=5 --quiet
	cd build/wheel-check/empty && ../venv/bin/murmuration validate 'scenarios/*.yaml'
	@$(PYTHON) --version && echo "the wheel works"

bench: .venv/.installed
	$(PY) benchmarks/engine.py
	$(PY) benchmarks/scale.py
	$(PY) benchmarks/sweep.py

clean:
	rm -rf .venv build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
	find results -mindepth 1 -maxdepth 1 ! -name .gitignore ! -name paper -exec rm -rf {} +
	rm -rf results/paper/.work
