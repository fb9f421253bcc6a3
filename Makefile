# make         .venv/bin/loadstone and .venv/bin/loadstone-engine with its JVM host, and RocksDB in the local Maven repository
# make demo    a first experiment on this machine, and its report
# make wheel   dist/loadstone-….whl with the engine: its installation needs neither cargo nor a JDK
# make release the same checks as CI on a clean tree, then the wheel and the release notes in dist/
# make check   format, lints, types and unit tests, in a minute
# make test    everything that CI runs
# make bench   side by side with other tools
# make soak    the tests that take minutes to hours
# make docs    the generated files in docs/
# make site    the docs site in site/
# make clean   removes the files that make created, but not results/
#
# One test: .venv/bin/pytest tests/unit/test_units.py -k decimals

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DELETE_ON_ERROR:
.NOTPARALLEL:
MAKEFLAGS += --no-builtin-rules

PYTHON ?= python3
VENV := .venv/bin

# The RocksDB versions to fetch: the engine's default, and the version that YCSB 0.17.0's binding uses. 10.10.1 belongs
# to the last release line with a jar for Linux alone (11.0.4 to 11.8.1 have no such jar). This jar, although named
# linux64, contains the libraries for all Linux architectures; the jar of 5.11.3 contains no library for aarch64.
ROCKSDB_VERSIONS ?= 10.10.1 $(if $(filter x86_64,$(shell uname -m)),5.11.3)
# The engine searches the same repository.
MAVEN_REPOSITORY := $(or $(LOADSTONE_MAVEN),$(HOME)/.m2/repository)
ROCKSDB := $(MAVEN_REPOSITORY)/org/rocksdb/rocksdbjni
ROCKSDB_JARS := $(foreach version,$(ROCKSDB_VERSIONS),$(ROCKSDB)/$(version)/rocksdbjni-$(version)-linux64.jar)

# rustup installs cargo in this directory, which is not in the PATH of a shell that started before the installation.
ifeq ($(shell command -v cargo),)
export PATH := $(HOME)/.cargo/bin:$(PATH)
endif

# CI makes a new clone each time, so the build directory is outside the clone. Incremental builds never pay off in CI.
ifeq ($(CI),true)
export CARGO_TARGET_DIR ?= $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/loadstone/target
export CARGO_INCREMENTAL := 0
LOCKED := --locked
endif
ENGINE := $(or $(CARGO_TARGET_DIR),target)/release/loadstone-engine

# The JVM host is embedded in the engine, which starts a JVM only for stores that need a JVM.
HOST := java/target/loadstone-host.jar
PACKAGE = mvn --quiet --batch-mode --file java -Dmaven.repo.local=$(MAVEN_REPOSITORY) package

PYTHON_SOURCES := python tests $(if $(wildcard benchmarks/*.py),benchmarks)

# The tools of Loadstone's developers.
DEVELOPER := $(VENV)/.developer

.PHONY: all prerequisites build engine rocksdb demo wheel release check test bench soak docs site clean

all: engine rocksdb

prerequisites:
	@PYTHON=$(PYTHON) bash scripts/prerequisites.sh

# Cargo always runs, because it checks for changes in crates/ itself. pip takes seconds, and runs only if necessary.
build: prerequisites $(HOST)
	@echo "Building the engine: about 3 minutes on 2 idle processors, or seconds after a small change"
	cargo build --release --package loadstone-engine $(LOCKED)

# Offline if possible: otherwise mvn uses the network even for files that it already has.
$(HOST): java/pom.xml $(shell find java/src -name '*.java') | prerequisites
	$(PACKAGE) --offline >/dev/null 2>&1 || $(PACKAGE)
	touch $@

# setup.py uses the engine that LOADSTONE_ENGINE names, instead of building an engine.
PIP_INSTALL = LOADSTONE_ENGINE=$(abspath $(ENGINE)) $(VENV)/pip install --quiet --disable-pip-version-check

$(VENV)/.installed: pyproject.toml setup.py python/loadstone/__init__.py | build
	test -x $(VENV)/python || $(PYTHON) -m venv .venv
	@echo "Installing the lab and its packages into .venv; this takes a minute"
	$(PIP_INSTALL) --editable .
	touch $@

$(DEVELOPER): $(VENV)/.installed
	$(PIP_INSTALL) --editable '.[dev]'
	touch $@

# `install` replaces the file, so a running engine is not affected.
engine: build $(VENV)/.installed
	@cmp --silent $(ENGINE) $(VENV)/loadstone-engine || install $(ENGINE) $(VENV)/loadstone-engine

rocksdb: prerequisites $(ROCKSDB_JARS)

$(ROCKSDB)/%.jar:
	mvn --quiet --batch-mode dependency:get -Dmaven.repo.local=$(MAVEN_REPOSITORY) -Dtransitive=false \
	    -Dartifact=org.rocksdb:rocksdbjni:$(*D):jar:linux64 \
	|| { echo "hint: \`make ROCKSDB_VERSIONS=\` goes without RocksDB" >&2; exit 1; }

demo: all
	$(VENV)/loadstone run experiments/quickstart.yaml

# setuptools would also package files that earlier builds left in build/.
wheel: $(VENV)/.installed
	rm -rf build
	LOADSTONE_ENGINE=$(abspath $(ENGINE)) $(VENV)/pip wheel --quiet --disable-pip-version-check --no-deps --wheel-dir dist .
	ls -sh dist

# A tag of the form vMAJOR.MINOR.PATCH is set by hand afterwards.
release:
	$(PYTHON) scripts/release.py check
	$(MAKE) test
	rm -f dist/*.whl
	$(MAKE) wheel
	$(PYTHON) scripts/release.py notes

define LINT
cargo fmt --all --check
$(VENV)/ruff check
$(VENV)/ruff format --check
$(VENV)/mypy $(PYTHON_SOURCES)
cargo clippy --workspace --all-targets $(LOCKED) -- --deny warnings
endef

check: engine $(DEVELOPER)
	$(LINT)
	$(VENV)/pytest -n 2 -m "not simulation" tests/unit

# The suite shares two processors among three workers and many servers. A test that fails there runs again, alone, and
# must pass; the second run prints its name.
test: all $(DEVELOPER)
	$(LINT)
	cargo test --workspace $(LOCKED)
	$(VENV)/pytest -n 3 || { test $$? = 1 && $(VENV)/pytest --last-failed --maxfail=1 -rA; }

bench: all
	$(VENV)/python benchmarks/run.py

# The tests with the marker `soak`; a hundred times the fuzzing of `make test` (proptest keeps failures under
# proptest-regressions/); fifty crashes of each kind; outages of up to 30 s with up to 2,000 clients; fifty pauses of a
# Cassandra and five kills of a Redis and a PostgreSQL whose writes are all accounted for; the judge's simulations in full;
# forty experiments whose true result is known; ten thousand damaged files to import; and ten thousand clients on real
# servers.
soak: all $(DEVELOPER)
	$(VENV)/pytest -n 3 -m soak
	LOADSTONE_CRASHES=50 $(VENV)/pytest tests/lab/test_lab_crash.py
	LOADSTONE_OUTAGES=all $(VENV)/pytest tests/engine/test_outages.py
	LOADSTONE_SIMULATIONS=1 $(VENV)/pytest -n 2 -rP tests/unit/test_judge_simulations.py tests/unit/test_search_simulations.py
	LOADSTONE_PAUSES=50 LOADSTONE_KILLS=5 $(VENV)/pytest -s -m "soak or servers" tests/servers/test_ledger_faults.py
	LOADSTONE_FLEET_KILLS=50 $(VENV)/pytest tests/lab/test_fleet_ray.py
	$(VENV)/python benchmarks/fleet_scale.py
	$(VENV)/python benchmarks/fleet_itself.py
	$(VENV)/python benchmarks/judge_soak.py
	$(VENV)/python benchmarks/ten_thousand.py
	PROPTEST_CASES=1000000 cargo test --release --package loadstone-load --package loadstone-kinds --package loadstone-ycsb $(LOCKED)

docs: all
	$(VENV)/loadstone-engine schema
	$(VENV)/python -m loadstone.engine
	$(VENV)/python -m loadstone.workloads
	$(VENV)/python -m loadstone.systems.reference
	$(VENV)/python -m loadstone.api.reference

$(VENV)/.site: $(VENV)/.installed
	$(PIP_INSTALL) --editable '.[site]'
	touch $@

# The site includes reports that maintainers add to docs/reports/. The variable silences an advertisement.
site: $(VENV)/.site
	NO_MKDOCS_2_WARNING=1 $(VENV)/mkdocs build --quiet
	@echo site/index.html

clean:
	rm -rf .venv target java/target build dist site python/*.egg-info .mypy_cache .pytest_cache .ruff_cache
	find python tests -name __pycache__ -prune -exec rm -rf {} +
