# make run   tunes GEMM on this machine's GPU, or on its CPU where there is none, and writes the report to build/run/
# make reports  tables, figures and pages of the databases in reports/, in build/reports/; needs no GPU
# make test  lint, types, unit tests and a sample of the others; needs no GPU, takes about 5 minutes on two free cores
# make test-wide  the others, and 100 random programs
# make fuzz  1,000 random programs that no test has seen before
# make test-all  all of these, with wider samples and what takes long
# make docs  the documentation as a site, in build/docs
# All make a virtual environment first, from python3 (3.11 or later); PYTHON=... and VENV=... choose others.

PYTHON ?= python3
VENV ?= .venv
BIN = $(VENV)/bin
# The CUDA toolchain is large: `make run` takes it only where there is a driver to use it.
GPU := $(shell command -v nvidia-smi >/dev/null 2>&1 && echo ,cuda)

# Of tests, beside each other: more than there are cores take longer.
PROCESSES ?= $(shell n=$$(nproc 2>/dev/null || echo 2); echo $$((n > 8 ? 8 : n)))

# The tests start many processes, and each would compile the modules of looptune again.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: run reports test types units test-wide fuzz test-all docs clean

run: $(VENV)/run.stamp
	@echo "GEMM is tuned now, and then reported. This takes about 1 minute. Ctrl-C loses nothing:"
	@echo "make run goes on from there. Outcomes are kept in .looptune/, tables and figures in build/run/."
	$(BIN)/looptune run polybench/gemm.c --sweep --budget 45s --reports build/run
	$(BIN)/looptune report --kernel gemm --reports build/run
	@echo "tables: build/run/*/gemm.md and table-*.md; figures: build/run/*/gemm.png and figures/"

reports: $(VENV)/run.stamp
	@echo "This takes about 3 minutes on two cores."
	$(BIN)/python benchmarks/published.py build/reports

test: $(VENV)/test.stamp
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(MAKE) --no-print-directory -j 2 types units

# mypy has one process: the tests beside it have the other cores.
types:
	$(BIN)/mypy

units:
	$(BIN)/python -m pytest -n $(PROCESSES) --dist worksteal

# The random programs are the same ones each time, so that what fails is of the change; `make fuzz` makes other ones.
test-wide: $(VENV)/test.stamp
	$(BIN)/python -m pytest -n $(PROCESSES) --dist worksteal -m "wide and not long"
	$(BIN)/python -m tests.differential --cases 100 --seed 7

# The seed that is printed makes the same ones again.
fuzz: $(VENV)/test.stamp
	$(BIN)/python -m tests.differential --cases 1000

test-all: test test-wide
	$(BIN)/python -m pytest -n $(PROCESSES) --dist worksteal -m long

# A warning is an error: a link that leads nowhere is one.
docs: $(VENV)/docs.stamp
	$(BIN)/python -m sphinx -n -W --keep-going -q docs build/docs
	@echo "build/docs/index.html"

# Installed in place, so only a change of the dependencies asks for pip again.
$(VENV)/run.stamp: pyproject.toml $(BIN)/python
	$(BIN)/python -m pip install -q -e '.[plot$(GPU)]'
	touch $@

$(VENV)/test.stamp: pyproject.toml $(BIN)/python
	$(BIN)/python -m pip install -q -e '.[test,docs,plot,cuda,distributed,opencl]'
	touch $@ $(VENV)/run.stamp $(VENV)/docs.stamp

$(VENV)/docs.stamp: pyproject.toml $(BIN)/python
	$(BIN)/python -m pip install -q -e '.[docs]'
	touch $@

$(BIN)/python:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "looptune needs Python 3.11 or later: make PYTHON=python3.11 ...")'
	$(PYTHON) -m venv $(VENV)

clean:
	rm -rf $(VENV) build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -prune -exec rm -rf {} +
