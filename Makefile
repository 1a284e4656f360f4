# Every command of the project. `make` alone prints them.

# The first interpreter that is new enough; `make PYTHON=/path/to/python3.11 setup` chooses another.
PYTHON ?= $(shell for candidate in python3.11 python3.12 python3.13 python3; do \
	$$candidate -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$candidate && break; done)
BIN := .venv/bin
READY := .venv/.ready
WORKERS ?= 2
SEEDS ?= 200
SEED_START ?= 0

MAKEFLAGS += --no-print-directory
.DEFAULT_GOAL := help
.PHONY: help setup test format lint types docs docs-check sim mutants bench-protocol bench-storage bench-wire build clean

help: ## print this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-16s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: $(READY) ## environment in .venv with pinned dependencies; does nothing when it is up to date
	@:

# The stamp is older than pyproject.toml after every change of a dependency.
$(READY): pyproject.toml
	@test -n "$(PYTHON)" || { echo "Python 3.11 or newer was not found. Install it (Debian: apt install python3.11 \
	python3.11-venv; macOS: brew install python@3.11) or say where it is: make PYTHON=/path/to/python setup"; exit 1; }
	@echo "Setting up .venv with $(PYTHON)"
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev,spark]'
	@touch $@

# pytest runs last, so that its summary is the last line.
test: setup lint types docs-check ## everything a change must pass: lint, types, documents, all tests, coverage
	@$(BIN)/pytest --quiet -n $(WORKERS) --dist loadgroup --cov --cov-report=term

format: setup ## format the code and sort its imports
	@$(BIN)/ruff check --quiet --select I --fix python integration_tests
	@$(BIN)/ruff format python integration_tests

lint: setup ## ruff, and the architecture test: who may import whom, how long things may get
	@$(BIN)/ruff check python integration_tests
	@$(BIN)/ruff format --check python integration_tests
	@$(BIN)/pytest --quiet python/test_architecture.py

types: setup ## mypy, strict
	@$(BIN)/mypy

docs: setup ## rewrite what is generated in docs/: settings, errors, the tables from rule to test
	@$(BIN)/python -m logdevice.docs
	@$(BIN)/python python/tools/rule_table.py

docs-check: setup ## fail if those pages are not what the code says
	@$(BIN)/python -m logdevice.docs --check
	@$(BIN)/python python/tools/rule_table.py --check

sim: setup ## simulate faults: SEEDS=n [SEED_START=m], or SEED=n to replay one with a trace; CLUSTER=1: write path too
	@$(BIN)/python -m logdevice.simulation $(if $(CLUSTER),--cluster) $(if $(SEED),--seed $(SEED),--seeds $(SEEDS) --seed-start $(SEED_START))

mutants: setup ## remove protocol rules one at a time and show that a test or the simulator notices
	@$(BIN)/python python/tools/mutants.py

bench-protocol: setup ## what the read path's machines cost per LSN, by part
	@$(BIN)/python python/tools/bench_protocol.py

bench-storage: setup ## a node's store against what the disk does alone
	@$(BIN)/python python/tools/bench_storage.py

bench-wire: setup ## messages between processes against bare gRPC
	@$(BIN)/python python/tools/bench_wire.py

build: setup ## the wheel, in dist/
	@$(BIN)/python -m pip wheel --quiet --disable-pip-version-check --no-deps --wheel-dir dist .
	@ls dist

clean: ## remove everything that was made, the environment too
	@rm -rf .venv build dist .gradle .pytest_cache .mypy_cache .ruff_cache .hypothesis .coverage .coverage.* python/*.egg-info
	@find python -name __pycache__ -type d -prune -exec rm -rf {} +
