# elman: `make demo` and `make test` do everything on a fresh machine.
#
#   make demo    make the environment .venv, train on Shakespeare, write runs/demo/report.html
#   make test    make the environment with the developers' tools, run the tests
#   make quick   run the tests that are not slow, in under a minute
#   make check   format, lint, types, documentation, tests with doctests
#   make release the wheel and the sdist in dist/, checked
#   make model   train the model that comes with elman, and put it into the package
#   make docs    the documentation as web pages, in site/
#   make clean   remove .venv, site/ and caches; runs/ stays
#
# PYTHON=... names the Python to use, VENV=... another folder for the environment, WORKERS=... the processes of the
# tests, ARGS=... more arguments for `elman demo` or pytest.

PYTHON  ?=
VENV    ?= .venv
WORKERS ?= 2
ARGS    ?=

bin         := $(VENV)/bin
environment := PYTHON="$(PYTHON)" VENV="$(VENV)" ./scripts/environment
# Compiled modules are kept, for the many processes that tests start.
# They print at once: what a stopped run had printed tells where it was.
tests       := PYTHONDONTWRITEBYTECODE= PYTHONUNBUFFERED=1 OMP_NUM_THREADS=1 $(bin)/python -m pytest -n $(WORKERS) --dist worksteal

.PHONY: help demo test quick check format lint types docs release model clean

help:
	@sed -n 's/^#   //p' Makefile

demo: $(VENV)/.installed
	$(bin)/elman demo $(ARGS)

test: $(VENV)/.installed-dev
	$(tests) $(ARGS)

quick: $(VENV)/.installed-dev
	$(tests) -m "not slow" $(ARGS)

check: format lint types docs test

format: $(VENV)/.installed-dev
	$(bin)/ruff format --check .

lint: $(VENV)/.installed-dev
	$(bin)/ruff check .

types: $(VENV)/.installed-dev
	$(bin)/mypy

docs: $(VENV)/.installed-dev
	$(bin)/mkdocs build --strict --site-dir site

release: $(VENV)/.installed-release
	rm -rf dist
	$(bin)/python -m build $(ARGS)
	$(bin)/python -m twine check --strict dist/*

model: $(VENV)/.installed
	$(bin)/elman demo $(ARGS)
	$(bin)/python scripts/included_model.py runs/demo shakespeare

clean:
	rm -rf .venv site build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis

$(VENV)/.installed: pyproject.toml constraints.txt scripts/environment
	@$(environment)
	@touch $@

$(VENV)/.installed-dev $(VENV)/.installed-release: $(VENV)/.installed-%: $(VENV)/.installed
	@$(environment) $*
	@touch $@
