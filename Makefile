# Every target sets up .venv first when it is missing or older than pyproject.toml.

# The first Python that is new enough; `make PYTHON=/path/to/python TARGET` takes another.
PYTHON ?= $(firstword $(foreach python,python3 python3.14 python3.13 python3.12 python3.11,$(shell \
	$(python) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $(python))))
BIN := .venv/bin

# How many processes the tests run in, each with a Spark session of its own.
WORKERS ?= 2
PARALLEL = -n $(WORKERS) --dist loadfile --durations=60 --durations-min=5

# The size of `make bench`: 1 is TPC-H's 1.5 million orders.
SCALE ?= 0.1
BATCHES ?= 5
WORKLOAD := bench/data/scale-$(SCALE)
# Of the tables and batches of `make bench ROW=...`; 1 is what the targets are about.
SIZE ?= 1

# The size of `make soak`: at most so many histories, none begun after so many minutes, the first one of this seed.
COUNT ?= 200
MINUTES ?= 240
SEED ?= 1

# How many days of the week `make kafka` runs.
DAYS ?= 7

.DEFAULT_GOAL := help
.PHONY: help demo warm kafka test test-slow reliability mutants check lint docs conformance record soak bench performance

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

demo: .venv/installed ## join seven days of flights with their planes and compare with PostgreSQL
	$(BIN)/lakejoin demo

warm: .venv/installed ## make the archive that JVMs start from: once on a machine, and after upgrades
	$(BIN)/lakejoin warm

kafka: .venv/installed ## the week of flights through a broker of Kafka, with runs that are killed; `make kafka DAYS=2`
	$(BIN)/python examples/kafka/run.py --days $(DAYS)

test: .venv/installed ## the tests, and the branch coverage of the transforms
	$(BIN)/pytest --ignore=tests/transforms -m "not spark and not slow and not ui" $(PARALLEL)
	$(BIN)/coverage erase
	$(BIN)/coverage run -m pytest tests/transforms -m "not spark and not slow and not ui"
	$(BIN)/coverage run -m pytest -m "spark and not slow and not ui" $(PARALLEL)
	$(BIN)/coverage combine --quiet
	$(BIN)/coverage report

test-slow: .venv/installed ## the tests that take many minutes: random histories, Dagster runs, its interface in a browser
	$(BIN)/pytest -m "slow or ui"

reliability: .venv/installed ## docs/reliability.md: every failure, bad input and guard with its tests, slow ones included, and how they end
	$(BIN)/pytest -m "failure or bad_input or guard" --reliability=docs/reliability.md $(if $(ONLY),-k "$(ONLY)")

mutants: .venv/installed ## changes of one line that each break a promise: which of them no test notices; `make mutants ONLY="grace 7"`
	$(BIN)/python tests/mutants/run.py $(ONLY)

check: lint ## what takes less than a minute: lint, and the tests without Spark
	$(BIN)/pytest -m "not spark and not slow and not ui"

lint: .venv/installed ## style, formatting, types, import contracts
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports

docs: .venv/installed ## the site of docs/ into site/; a link to nowhere fails it
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

conformance: .venv/installed ## what Kafka Streams answered, case by case: event by event, in one batch, in random batches, by stars
	$(BIN)/python tests/conformance/run.py tests/conformance/cases
	$(BIN)/python tests/conformance/run.py tests/conformance/cases --batches one
	$(BIN)/python tests/conformance/run.py tests/conformance/cases --batches random:1
	$(BIN)/python tests/conformance/run.py tests/conformance/cases --only 'fk-*' --steps 15 --stars

record: .venv/installed ## change data by Debezium from PostgreSQL and MariaDB, recorded anew: `make record ONLY=postgres`
	cd tests && ../$(BIN)/python -m recordings.record $(ONLY)

soak: .venv/installed ## random histories with everything going wrong: `make soak COUNT=20 MINUTES=15 SEED=1`, or HISTORY=SEED
	$(BIN)/python tests/soak/run.py --count $(COUNT) --minutes $(MINUTES) --seed $(SEED) $(if $(HISTORY),--history $(HISTORY))

bench: .venv/installed ## batches against recomputing the join, or rows of the targets: `make bench ROW="1 2"`, see bench/README.md
ifdef ROW
	$(BIN)/python bench/row.py $(ROW) --size $(SIZE)
else
	@test -f $(WORKLOAD)/expected/batch-$$(printf %03d $(BATCHES)).txt \
		|| $(BIN)/python bench/workload.py $(WORKLOAD) --scale $(SCALE) --batches $(BATCHES)
	$(BIN)/python bench/run.py --workload $(WORKLOAD) --batches $(BATCHES)
endif

performance: .venv/installed ## table and plots of docs/performance.md, from all results of the benchmark
	$(BIN)/python bench/report.py --into docs/performance.md --images docs/images

.venv/installed: pyproject.toml
	@test -n "$(PYTHON)" || { echo "Lakejoin needs Python 3.11 or newer, and none is on PATH." \
		"Install one, or name it: make PYTHON=/path/to/python3 TARGET" >&2; exit 1; }
	@echo "Setting up .venv with $(PYTHON); the first time this takes some minutes."
	@$(PYTHON) -m venv .venv
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	@touch $@
