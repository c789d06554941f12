# Two commands do everything: `make repro` and `make test`. `make help` lists the rest.
PYTHON ?= python3
PIP_ARGS ?=
VENV := .venv
READY := $(VENV)/.ready
SHELL := /bin/bash
# DVC's stages call `manymatch` and `python`: the environment comes first.
export PATH := $(CURDIR)/$(VENV)/bin:$(PATH)

.DEFAULT_GOAL := help
.PHONY: help setup repro serve stop test quick long-tests gpu-check lint types docs readme freeze clean

help:  ## print this
	@awk -F':.*## ' '/^[a-z-]+:.*## / {printf "  make %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: $(READY)  ## create .venv with every package, pinned

$(READY): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "error: $(PYTHON) is older than 3.11; use make PYTHON=python3.11"; exit 1; }
	@echo "installs the packages in $(VENV): 3.2 GB, two minutes or more; the large ones are:"
	$(PYTHON) -m venv $(VENV)
	@set -o pipefail; $(VENV)/bin/python -m pip install $(PIP_ARGS) --no-compile -c constraints.txt -e '.[dev]' | \
		while read -r line; do \
			case $$line in *" MB)") echo "  $$line";; "Installing collected"*) echo "  Installing all packages";; esac; \
		done
# pip compiles with one core. A few files of the packages are for newer Pythons and do not compile.
	@$(VENV)/bin/python -m compileall -qq -j 0 $(VENV)/lib || true
# The service's data base, so that the first `make serve` is as quick as the others.
	$(VENV)/bin/prefect server database upgrade --yes > /dev/null
# Vega from its package in DVC's page, so that `dvc plots show` draws without a network.
	$(VENV)/bin/manymatch plots-page
	$(VENV)/bin/dvc config --local plots.html_template plots.html
	@touch $@

repro: $(READY)  ## run the whole pipeline of params.yaml (dvc repro) and say where the report is
	@manymatch check
	dvc repro
	@manymatch results

serve: $(READY)  ## start the service (Prefect) and say how to run the pipeline with it
	@python -m pipelines.serve

stop: $(READY)  ## end the service
	@python -m pipelines.serve stop

# Each test process uses one core: small tensors split over cores only wait for each other. The tests
# of a file run in one process, because they share fixtures, and those of the service run in order.
# Files run in the order of tests/conftest.py, the longest first.
# Bytecode is kept, because compiling the tests takes as long as many of them.
PYTEST := PYTHONDONTWRITEBYTECODE= OMP_NUM_THREADS=1 python -m pytest -q
PARALLEL := --dist loadfile --no-loadscope-reorder

test: $(READY)  ## run every test
# The tests of services and of killed processes wait: a third process uses that time.
	$(PYTEST) -n 3 $(PARALLEL)

quick: $(READY)  ## run the short tests, in less than a minute
	$(PYTEST) -n 2 $(PARALLEL) -m 'not slow and not long'

long-tests: $(READY)  ## record which tests take too long for `make quick`
	PYTHONPATH=tests/helpers $(PYTEST) -p long_tests -m 'not slow'

gpu-check: $(READY)  ## on a machine with a GPU: compare each method with the CPU, time steps and loaders
	python benchmarks/gpu_check.py

lint: $(READY)  ## check style and format
	ruff check .
	ruff format --check .

types: $(READY)  ## check types
	mypy

docs: $(READY)  ## make a site of the documentation in site/
	python -m pip install --quiet $(PIP_ARGS) -c constraints.txt -e '.[docs]'
	NO_MKDOCS_2_WARNING=1 mkdocs build --quiet
	@echo "site/index.html; with a search: python -m http.server -d site"

readme: $(READY)  ## put the results into docs/results.md and README.md
	manymatch readme

freeze: $(READY)  ## write constraints.txt from the environment
	@{ echo "# Every package of the environment, at the versions that were tested together."; \
	   pip freeze --exclude-editable | sed 's/+[a-z0-9]*$$//' \
	   | grep -vE '^(pip|setuptools|triton|nvidia-(cu|nccl|nv)[a-z0-9-]*)==' | LC_ALL=C sort -f; } > constraints.txt

clean:  ## remove the environment and everything that the pipeline made
	rm -rf $(VENV) site data/* models/* reports/index.html reports/pages reports/leaderboard.{md,tex} \
		reports/curves reports/runs reports/plots reports/machine reports/service dvc_plots
