# anchord: `make demo` shows the whole job, `make test` runs everything that must pass.
# Needs Python 3.11 to 3.14 (with venv) and make; the suite also what `.ci/run` installs.
#
#   PYTHON=python3.13 VENV=.venv-3.13   another interpreter, in an environment of its own
#   PYTEST_ARGS="tests/unit -k merkle"  a part of the suite
#   SIZE=10000,100000                   how many records `make bench`, `items` and `tree` measure
#   RECORDS=20000 HOURS=24              how much `make day` lives through
#   DAYS=30 RECORDS=50000 STORE=sqlite  what `make soak` lives through; STORE=postgres starts a server
#   TIME=600                            how many seconds `make fuzz` takes
#   SERVE=1                             `make demo` serves pages of its records at the end, and prints the address

VENV ?= .venv
PYTHON ?= $(shell for p in python3 python3.14 python3.13 python3.12 python3.11; do \
  $$p -c 'import sys; sys.exit(not (3, 11) <= sys.version_info < (3, 15))' 2>/dev/null \
  && echo $$p && break; done)
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check
AUDIT := $(VENV)-advisories
PYTEST_ARGS ?=
SIZE ?= 10000
RECORDS ?= 20000
HOURS ?= 24
DAYS ?= 30
STORE ?= sqlite
SEED ?= 1
TIME ?= 600
LOCK := uv pip compile pyproject.toml --all-extras --universal --python-version 3.11 --generate-hashes \
  --no-emit-index-url --no-emit-find-links --no-header --no-annotate --quiet --upgrade
LOCK_NOTE := \# Made by `make constraints` from pyproject.toml; one file for CPython 3.11 to 3.14.

.PHONY: help demo test lint dev fuzz advisories bench day soak items idle face fleet tree tampering screenshots constraints clean

help: ## list the targets
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

demo: $(BIN)/.run ## the whole job on four records, in the sandbox (not Bitcoin)
	$(BIN)/anchord demo $(if $(SERVE),--serve)

test: lint ## everything that must pass: lint, types and the whole suite
	$(BIN)/python -m pytest -n auto --durations=10 --fail-on-skip $(PYTEST_ARGS)

lint: $(BIN)/.dev ## style and types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

dev: $(BIN)/.dev ## the environment to work in

bench: $(BIN)/.dev ## measure against the standard library and client, side by side
	$(BIN)/python -m benchmarks --size $(SIZE)

day: $(BIN)/.dev ## live through a day of captures, fair and foul, on a clock that jumps
	$(BIN)/python -m benchmarks.day --records $(RECORDS) --hours $(HOURS)

soak: RECORDS = 50000
soak: $(BIN)/.dev ## days of virtual time with every fault: lost, doubled, false and stuck must be 0
	PYTHONPATH=tests $(BIN)/python -m benchmarks.soak --days $(DAYS) --records $(RECORDS) --store $(STORE) --seed $(SEED)

items: $(BIN)/.dev ## pack, upload and confirm bundles at a stand-in, by the real library
	$(BIN)/python -m benchmarks.items --size $(SIZE)

idle: $(BIN)/.dev ## serve a store in which nothing is due
	$(BIN)/python -m benchmarks.idle --size $(SIZE)

face: $(BIN)/.dev ## serve a store of complete records, and ask for pages, documents, lists and the dashboard
	$(BIN)/python -m benchmarks.face --size $(SIZE)

fleet: $(BIN)/.dev ## two workers against one daemon on a PostgreSQL server, and on SQLite
	PYTHONPATH=tests $(BIN)/python -m benchmarks.fleet --size $(SIZE)

tree: $(BIN)/.dev ## publish a tree and audit it, beside the bare verification of its signatures
	$(BIN)/python -m benchmarks.tree --size $(SIZE)

tampering: $(BIN)/.dev ## the tampering table: every field and every byte of a published tree changed
	PYTHONPATH=tests $(BIN)/python -m support.tampering
	PYTHONPATH=tests $(BIN)/python -m support.tampering --bytes

screenshots: $(BIN)/.dev ## make the pictures of the documents anew (needs chromium)
	PYTHONPATH=tests $(BIN)/python -m support.screenshots docs/screenshots

fuzz: $(BIN)/.dev ## feed every parser of foreign bytes with broken ones
	PYTHONPATH=tests $(BIN)/python -m support.fuzzing --seconds $(TIME)

advisories: constraints.txt ## ask for known weaknesses of all that is installed (needs an index that publishes them)
	@test -x $(AUDIT)/bin/pip-audit || { $(PYTHON) -m venv $(AUDIT) && \
	  $(AUDIT)/bin/python -m pip --disable-pip-version-check install -qq 'pip-audit>=2.7,<3'; }
	$(AUDIT)/bin/pip-audit --strict --require-hashes --disable-pip --progress-spinner off -r $<

constraints: $(BIN)/python ## resolve the dependencies anew and write the hashed files
	$(PIP) install -qq uv
	$(BIN)/$(LOCK) --group build -o constraints.txt
	$(BIN)/$(LOCK) --group build --group test --group lint -c constraints.txt -o constraints-dev.txt
	for file in constraints.txt constraints-dev.txt; do \
	  { echo '$(LOCK_NOTE)'; grep -v '^#' $$file; } > $$file.new && mv $$file.new $$file; done

clean: ## remove what the other targets made
	rm -rf $(VENV) $(AUDIT) .fuzz build dist *.egg-info .mypy_cache .pytest_cache .ruff_cache .hypothesis
	find anchord tests benchmarks -name __pycache__ -type d -prune -exec rm -rf {} +

# The stamps tell what is installed, so a second run installs nothing. anchord itself is linked,
# not copied: a changed source file needs no new install.
$(BIN)/python:
	@test -n "$(PYTHON)" || { echo "make: found no Python 3.11 to 3.14; name one with PYTHON=..." >&2; exit 2; }
	@$(PYTHON) -m venv $(VENV) || { rm -rf $(VENV); \
	  echo "make: $(PYTHON) cannot make virtual environments; on Debian: apt install python3-venv" >&2; exit 2; }

$(BIN)/.run: constraints.txt pyproject.toml | $(BIN)/python
	@echo "installing what anchord runs with into $(VENV) ..."
	@$(PIP) install -qq --require-hashes -r constraints.txt
	@$(PIP) install -qq --no-deps --no-build-isolation -e .
	@touch $@

$(BIN)/.dev: constraints-dev.txt pyproject.toml | $(BIN)/python
	@echo "installing what anchord is tested with into $(VENV) ..."
	@$(PIP) install -qq --require-hashes -r constraints-dev.txt
	@$(PIP) install -qq --no-deps --no-build-isolation -e .
	@touch $@ $(BIN)/.run
