# One command for everything. The first one makes .venv from requirements.lock; nothing but Python >= 3.11 and make is needed.
#   make demo DAYS=7     make test ARGS="-k lmdb"     make sim ARGS="--seeds 1000"     make bench ARGS="--only W1"

VENV := .venv
RUN := $(VENV)/bin
READY := $(VENV)/viewkeeper-environment
DAYS ?=
ARGS ?=

# The first Python that is new enough and can make environments; else the first that is new enough, which then says what it lacks.
ENOUGH := import sys; sys.exit(sys.version_info < (3, 11))
COMPLETE := import sys, ensurepip, venv; sys.exit(sys.version_info < (3, 11))
NAMES := python3 python3.13 python3.12 python3.11 python3.14 python
find = $(firstword $(foreach name,$(NAMES),$(shell $(name) -c "$(1)" >/dev/null 2>&1 && echo $(name))))
PYTHON ?= $(or $(call find,$(COMPLETE)),$(call find,$(ENOUGH)))

.DEFAULT_GOAL := help
.PHONY: help demo test check lint format sim bench peers docs lock clean

# What can be made.
help:
	@awk '/^# /{said=substr($$0,3)} /^[a-z]+:/{split($$0,name,":"); printf "make %-8s %s\n", name[1], said}' Makefile

$(READY): requirements.lock pyproject.toml tools/environment.py
	@test -n "$(PYTHON)" || { echo "Viewkeeper needs Python 3.11 or newer: install it, then run make again." >&2; exit 1; }
	@$(PYTHON) tools/environment.py $(VENV)
	@touch $@

# A year of real flights, six live views, each verified at the end.
demo: $(READY)
	@$(RUN)/viewkeeper demo $(if $(DAYS),--days $(DAYS)) $(ARGS)

# All tests, Spark's in one worker (one session), the others beside it.
test: $(READY)
	$(RUN)/python -m pytest -n 2 --dist loadgroup $(ARGS)

# What to run before every commit: lint, and the tests that need neither Spark nor patience; under two minutes.
check: lint
	$(RUN)/python -m pytest -n 2 --dist loadgroup -m "not spark and not slow" $(ARGS)

# Style, format, types and the arrows between packages.
lint: $(READY)
	$(RUN)/ruff check .
	$(RUN)/ruff format --check .
	$(RUN)/mypy
	$(RUN)/lint-imports

# Put right what ruff can put right by itself.
format: $(READY)
	$(RUN)/ruff check --fix .
	$(RUN)/ruff format .

# Long runs with fresh seeds: oracle, simulation, kills.
sim: $(READY)
	$(RUN)/python -m viewkeeper.testing.soak $(ARGS)

# Every figure of bench/results, measured again: ours, and the peers that `make peers` has installed.
bench: $(READY)
	$(RUN)/python -m bench $(ARGS)

# The systems that the bench compares with, into .peers; a quarter of an hour, most of it one Rust build.
peers: $(READY)
	$(RUN)/python -m bench.peers_setup $(ARGS)

# The pages that are written from the code: commands, settings, error codes.
docs: $(READY)
	$(RUN)/python -m tools.docs $(ARGS)

# The newest versions that pyproject.toml allows, with hashes.
lock: $(READY)
	$(RUN)/uv pip compile --upgrade --generate-hashes --universal --python-version 3.11 --all-extras --no-annotate \
		--no-header --no-emit-index-url --no-emit-find-links --output-file requirements.lock pyproject.toml

# Away with the environment and all caches; stores stay.
clean:
	rm -rf $(VENV) build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
	find src tests bench tools -name __pycache__ -type d -prune -exec rm -rf {} +
