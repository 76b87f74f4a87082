# Run `make` to see what there is.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PYTEST := $(BIN)/python -m pytest --numprocesses auto --dist worksteal
TRIAL := .trial
DATA ?=

unexport PYTHONDONTWRITEBYTECODE  # the tests start a hundred processes: compile once

.DEFAULT_GOAL := help
.PHONY: help run test check mutants fmt docs bench clean

help: ## show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-8s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

$(VENV)/ready: pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "memsvc needs Python 3.11 or newer; make PYTHON=python3.12 ...")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	touch $@

run: $(VENV)/ready ## set up, fill a trial store from this history, start the worker
	MEMSVC_HOME=$(CURDIR)/$(TRIAL) $(BIN)/memsvc trial .

test: $(VENV)/ready ## set up and run the tests, without the slow proofs
	$(PYTEST) -m 'not slow'

check: $(VENV)/ready ## lint, types and all tests, with many random examples
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	HYPOTHESIS_PROFILE=thorough $(PYTEST)

mutants: $(VENV)/ready ## change the code in small ways and list what no test notices (an hour)
	HYPOTHESIS_PROFILE=few $(BIN)/mutmut run
	$(BIN)/mutmut results

fmt: $(VENV)/ready ## format and fix what can be fixed
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

docs: $(VENV)/ready ## write the answers in README.md and the skill's pages anew
	$(BIN)/python -m tests.documents

bench: $(VENV)/ready ## measure speed and quality: make bench DATA=folder
	$(BIN)/python -m benchmarks $(DATA)

clean: ## remove the environment, caches and the trial store
	rm -rf $(VENV) $(TRIAL) build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis mutants
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
