# Each target sets up .venv by itself; Python 3.11 or later is all it needs.

.PHONY: help scenarios test thorough conformance record lint types format docs site words report bench clean
.DEFAULT_GOAL := help

# Images of containers set it: every process that a test starts would compile the whole package anew.
unexport PYTHONDONTWRITEBYTECODE

VENV := .venv
BIN := $(VENV)/bin
# What running scenarios needs, and with READY everything that the checks need beside it.
RUNS := $(VENV)/.runs
READY := $(VENV)/.ready
# The first of these that runs and is new enough; `make PYTHON=...` names another.
PYTHON ?= $(firstword $(foreach name,python3 python3.14 python3.13 python3.12 python3.11, \
	$(shell $(name) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $(name))))

help: ## show this list
	@sed -n 's/^\([a-z]*\):[^#]*## \(.*\)/make \1#\2/p' $(MAKEFILE_LIST) | column -t -s '#' 2>/dev/null \
		|| sed -n 's/^\([a-z]*\):[^#]*## \(.*\)/make \1: \2/p' $(MAKEFILE_LIST)

scenarios: $(RUNS) ## run the built-in suites
	@$(BIN)/statek-sim run

test: $(READY) ## test the toolkit itself, in a few minutes; PARTS="lint types" runs only these
	@$(BIN)/python -m tools.ci $(PARTS)

thorough: $(READY) ## also test releases of STATEK, other Pythons, packaging, examples; REDUCED=1 tests as CI does
	@$(BIN)/python -m tools.ci $(if $(REDUCED),--reduced,--thorough)

conformance: $(READY) ## compare with real versions of STATEK, each in its own environment
	@$(BIN)/python -m tools.conformance --random 2000

record: $(READY) ## record the behaviour of real versions of STATEK again
	@$(BIN)/python -m tools.environments > /dev/null
	@$(BIN)/python -m tests.conformance.record

lint: $(READY) ## check style, formatting and import contracts
	@$(BIN)/python -m tools.ci lint format imports

types: $(READY) ## check types with mypy --strict
	@$(BIN)/python -m tools.ci types

format: $(READY) ## format the code
	@$(BIN)/ruff check --quiet --fix-only . && $(BIN)/ruff format .

docs: $(READY) ## generate the reference pages from docstrings and the schema
	@$(BIN)/python -m tools.reference && $(BIN)/python -m tools.rooms

site: $(READY) ## build the documentation as a site, in site/
	@$(BIN)/python -m tools.build_site

words: ## count the words of the documentation, without code blocks and the generated reference
	@cat README.md $(filter-out docs/python-api.md docs/scenario-format.md docs/commands.md,$(wildcard docs/*.md)) \
		| awk '/^```/ {code = !code; next} !code' | grep -oE '[[:alnum:]_]\S*' | wc -l

report: $(READY) ## generate the sample reports in reports/sample
	@$(BIN)/python -m tools.sample_report

bench: $(READY) ## compare speed with the real STATEK and similar packages
	@$(BIN)/python -m bench.run

clean: ## remove generated files
	rm -rf $(VENV) .venv-* .browser .mcp-peers .postgres .savers bench/.cassetter bench/.peer bench/.tools bench.json conformance.json random-examples.json build dist site .cache
	rm -rf .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(RUNS): pyproject.toml
	@test -n "$(PYTHON)" || { echo 'no Python 3.11 or later found; name one with make PYTHON=/path/to/python' >&2; exit 1; }
	@echo "setting up $(VENV): what running scenarios needs, about 110 MB; once, and most of a minute"
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m tools.installing $(BIN)/python --editable .
	@touch $@

$(READY): $(RUNS)
	@echo "setting up $(VENV): linters, type checker, browser driver and the clients that are tested against, about 600 MB; once, and some minutes"
	@$(BIN)/python -m tools.installing $(BIN)/python --editable '.[dev]'
	@touch $@
