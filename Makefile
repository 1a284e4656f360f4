# Every command of the project. `make` alone prints them.

# The first interpreter that is new enough; `make PYTHON=/path/to/python3.11 setup` chooses another.
PYTHON ?= $(shell for candidate in python3.11 python3.12 python3.13 python3; do \
	$$candidate -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$candidate && break; done)
BIN := .venv/bin
READY := .venv/.ready
DELTA_READY := .venv/.delta-ready
SITE_READY := .venv/.site-ready
# Kafka and Spark's source for it: what `make bench` measures us against. Nothing else needs it.
PEER := python/logdevice/bench/against_kafka/peer
PEER_READY := .venv/.peer-ready
# The JVM side of the connector. JVM=0 does without, knowingly; CONNECTOR=ready: Gradle called us and has built it.
JAR := python/pyspark_logdevice/jars/logdevice-spark-connector.jar
CONNECTOR_READY := .venv/.connector-ready
JVM ?= 1
CONNECTOR ?=
export JVM
GRADLE := gradle --no-daemon --quiet -PpysparkJars="$$(.venv/bin/python -c \
	'import pathlib, pyspark; print(pathlib.Path(pyspark.__file__).parent / "jars")')"
# Two cores are busy with two; with three the nodes of a third cluster take more than is gained.
WORKERS ?= 2
# Hundreds of processes start in a run: none should compile our modules anew, whatever the shell's environment says.
TESTS := PYTHONDONTWRITEBYTECODE= $(BIN)/pytest --quiet -n $(WORKERS) --dist loadscope
SOURCES := python integration_tests examples docs
SEEDS ?= 200
SEED_START ?= 0

MAKEFLAGS += --no-print-directory
.DEFAULT_GOAL := help
.PHONY: help setup test test-quick test-chain demo jar format lint types docs docs-check site sim mutants bench-protocol bench-storage bench-wire bench-spark bench bench-quick bench-jars soak-spark soak-writers soak-lineage soak-cuts build clean

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
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev,spark,delta,examples]'
	@touch $@

$(DELTA_READY): $(READY)
	@echo "Fetching Delta's jars from Maven Central"
	@$(BIN)/python -m pyspark_logdevice.delta > /dev/null
	@touch $@

jar: setup $(JAR) ## the JVM side of the Spark connector, by Gradle, into the Python package
	@:

$(JAR): $(READY) build.gradle settings.gradle $(shell find connector/src/main -type f)
	@if $(have-gradle); then $(GRADLE) install && touch $@; else $(without-gradle); fi

# Without Gradle the build goes on, and the tests of the JVM side fail: they must not seem to have passed.
$(CONNECTOR_READY): $(READY) build.gradle settings.gradle $(shell find connector/src -type f)
	@echo "Building and testing the JVM side of the connector"
	@if $(have-gradle); then $(GRADLE) install test && touch $(JAR) $@; else $(without-gradle); fi

# Debian's package will do, where we may install it.
have-gradle = { command -v gradle > /dev/null || { [ "$$(id -u)" = 0 ] && command -v apt-get > /dev/null && \
	echo "Installing Gradle" && apt-get install -qq -y --no-install-recommends gradle > /dev/null; }; }
without-gradle = echo "Gradle was not found, so there is no jar: install it (Debian: apt install gradle; macOS: brew \
	install gradle). Until then logs are read by the Python surface alone, and make test needs JVM=0 to pass."

# pytest runs last, so that its summary is the last line.
test: setup $(DELTA_READY) $(if $(filter-out 0,$(JVM)),$(if $(CONNECTOR),,$(CONNECTOR_READY) $(JAR))) lint types docs-check site ## everything a change must pass: lint, types, documents, site, all tests, coverage
	@$(TESTS) --cov --cov-report=term

test-quick: setup ## the unit tests alone: no clusters of processes, no Spark session, no jar; some minutes
	@$(TESTS) python

test-chain: setup $(DELTA_READY) $(if $(filter-out 0,$(JVM)),$(JAR)) ## all tests with real processes once more, every log of them written along chains
	@LOGDEVICE_REPLICATION_MODE=chain $(TESTS) integration_tests

format: setup ## format the code and sort its imports
	@$(BIN)/ruff check --quiet --select I --fix $(SOURCES)
	@$(BIN)/ruff format $(SOURCES)

lint: setup ## ruff, and the architecture test: who may import whom, how long things may get
	@$(BIN)/ruff check $(SOURCES)
	@$(BIN)/ruff format --check $(SOURCES)
	@$(BIN)/pytest --quiet python/test_architecture.py

types: setup ## mypy, strict
	@$(BIN)/mypy

docs: setup ## rewrite what is generated: reference, settings, errors, options, rule tables, tree, picture
	@$(BIN)/python -m tools.docs

docs-check: setup ## fail if a generated document is not what the code says
	@$(BIN)/python -m tools.docs --check

$(SITE_READY): $(READY)
	@echo "Installing Sphinx"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[site]'
	@touch $@

site: $(SITE_READY) ## the documents as a site with search, in build/site; a warning is an error
	@$(BIN)/sphinx-build --quiet --fail-on-warning --keep-going --fresh-env -c docs . build/site
	@echo "Open build/site/index.html"

demo: setup $(DELTA_READY) ## five nodes, Spark and Delta: kills a node, the sequencer and the driver, counts, draws; in build/demo
	@$(BIN)/python -m examples.demo

sim: setup ## simulate faults: SEEDS=n, or SEED=n for a trace. CLUSTER, LOSSES, CHAIN, HISTORIES or ALL=1: other worlds (CONTRIBUTING.md)
	@$(BIN)/python -m logdevice.simulation $(if $(ALL),--all) $(if $(CLUSTER),--cluster) $(if $(LOSSES),--losses) $(if $(CHAIN),--chain) $(if $(HISTORIES),--histories) $(if $(SEED),--seed $(SEED),--seeds $(SEEDS) --seed-start $(SEED_START))

mutants: setup ## remove protocol rules one at a time and show that a test or the simulator notices. ARGS="--only P6": some
	@$(BIN)/python -m tools.mutants $(ARGS)

bench-protocol: setup ## what the read path's machines cost per LSN, by part
	@$(BIN)/python -m logdevice.bench.parts.protocol

bench-storage: setup ## a node's store against what the disk does alone
	@$(BIN)/python -m logdevice.bench.parts.storage

bench-wire: setup ## messages between processes against bare gRPC
	@$(BIN)/python -m logdevice.bench.parts.wire

bench-spark: setup ## a scan through Spark against a source with ready-made batches; both surfaces. ARGS=--json
	@$(BIN)/python -m logdevice.bench.parts.spark $(ARGS)

$(PEER_READY): $(READY) $(PEER)/build.gradle
	@echo "Fetching Kafka's jars from Maven Central"
	@if $(have-gradle); then gradle --no-daemon --quiet -p $(PEER) --project-cache-dir $(CURDIR)/build/gradle-peer \
	-Pinto=$(CURDIR)/.venv/share/logdevice/peer fetch && touch $@; else echo "Gradle was not found: install it \
	(Debian: apt install gradle; macOS: brew install gradle). Kafka's jars are fetched by it."; exit 1; fi

bench-jars: $(PEER_READY) ## fetch Kafka's jars, 53 MB, for make bench
	@:

bench: setup $(DELTA_READY) $(JAR) $(PEER_READY) ## measure against Kafka, everything: docs/benchmarks.md. ARGS="--only scan,etl": some of it
	@$(BIN)/python -m logdevice.bench.against_kafka run $(ARGS)

bench-quick: setup $(DELTA_READY) $(JAR) $(PEER_READY) ## some of it in under three minutes: prints ratios, to compare with those of another day
	@$(BIN)/python -m logdevice.bench.against_kafka run --quick $(ARGS)

soak-writers: setup ## kill and pause sequencers under four writers fifty times (FAILOVERS=n), and show how long appends stall
	@LOGDEVICE_WRITER_FAILOVERS=$(or $(FAILOVERS),50) $(BIN)/pytest --quiet integration_tests/test_writers.py

soak-lineage: setup ## kill the sequencer of a log fifty times (FAILOVERS=n), and show that its history never branches
	@LOGDEVICE_LINEAGE_FAILOVERS=$(or $(FAILOVERS),50) $(BIN)/pytest --quiet --timeout 3600 integration_tests/test_lineage.py

soak-cuts: setup ## ten thousand cuts (CUTS=n) under load: never an effect without its cause
	@LOGDEVICE_CUTS=$(or $(CUTS),10000) $(BIN)/pytest --quiet --timeout 7200 integration_tests/test_cuts.py

soak-spark: setup ## kill a Spark driver and an executor twenty times (KILLS=n) and show that nothing is lost or duplicated
	@KILLS=$(or $(KILLS),20) EXECUTORS=1 $(BIN)/pytest --quiet --timeout 7200 integration_tests/spark/test_killed_driver.py

build: setup jar ## the wheel, in dist/
	@$(BIN)/python -m pip wheel --quiet --disable-pip-version-check --no-deps --wheel-dir dist .
	@ls dist

clean: ## remove everything that make has made, the environment too
	@rm -rf .venv build dist connector/build python/pyspark_logdevice/jars .gradle .pytest_cache .mypy_cache .ruff_cache .hypothesis .coverage .coverage.* python/*.egg-info
	@find python integration_tests examples -name __pycache__ -type d -prune -exec rm -rf {} +
