# Every target makes the virtual environment it needs; only Python 3.11+, make and a package index are assumed.
PYTHON ?= $(shell command -v python3 || command -v python)
VENV   := .venv
BIN    := $(VENV)/bin

.DEFAULT_GOAL := help
.PHONY: help demo test lint docs bench clean

help:  ## list the targets
	@sed -n 's/^\([a-z]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 10

demo: $(VENV)/all.stamp  ## cluster a table without naming k; results in demo-output/
	$(BIN)/countless demo --out demo-output --force

test: $(VENV)/test.stamp  ## run the tests and report coverage
	$(BIN)/python -m pytest --cov

lint: $(VENV)/test.stamp $(VENV)/lint.stamp  ## check style and types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

docs: $(VENV)/docs.stamp  ## build the site into site/
	$(BIN)/mkdocs build --strict --quiet

bench: $(VENV)/bench.stamp  ## time DP-means beside its peers
	$(BIN)/python benchmarks/dp_means.py

clean:  ## remove everything the other targets made
	rm -rf $(VENV) site demo-output .coverage .cache .hypothesis .mypy_cache .pytest_cache .ruff_cache

# A stamp stands for one installed extra; it is made again when pyproject.toml changes.
$(VENV)/%.stamp: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[$*]'
	@touch $@

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "countless needs Python 3.11 or newer; set PYTHON=..." >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)
