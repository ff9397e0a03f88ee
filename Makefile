# Two commands do everything on a fresh machine with Python 3.11 and make: `make demo` and `make test`.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV := $(CURDIR)/.venv
RUNS := $(VENV)/.runs
INSTALLED := $(VENV)/.installed
DOCUMENTED := $(VENV)/.documented
export PATH := $(VENV)/bin:$(PATH)
# One thread per process: the workflow runs one process per core.
export OMP_NUM_THREADS := 1

# The variables of make's command line go on to the target's command as they are typed: column names may hold spaces, and
# a $ is no variable of make's. Those of the environment do not.
override export GIVEN := $(foreach name,$(.VARIABLES),$(if $(filter command,$(origin $(name))),$(name)))
$(foreach name,$(GIVEN),$(eval override export $(name) := $$(value $(name))))
# What `make ranking` reads.
export DATA_DIR := data
export SCALE := small
export PEERS :=

COMMANDS := new-study audit-model audit-training release share
TAKEN := PYTHON VENV $(if $(filter ranking,$(MAKECMDGOALS)),DATA_DIR SCALE PEERS)
ifneq ($(filter-out $(COMMANDS),$(or $(MAKECMDGOALS),help)),)
$(foreach name,$(filter-out $(TAKEN),$(GIVEN)),$(error make $(MAKECMDGOALS) has no variable $(name); it has $(TAKEN)))
endif

.PHONY: help install demo smoke new-study audit-training audit-model release share docs test wheel test-long test-fuzz test-slurm coverage lint format tag publish bench bench-all ranking reference papers constraints clean

help:  ## list these commands
	@grep -E '^[a-z-]+:.*##' Makefile | sed -E 's/:.*## /\t/' | expand -t 14

install: $(INSTALLED)  ## set up .venv with everything; `make demo` sets up only what a run needs

$(RUNS): pyproject.toml envs/constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(0 if sys.version_info >= (3, 11) else "Python 3.11 or newer is needed: make PYTHON=/path/to/python3.11 …")'
	$(PYTHON) -m venv $(VENV)
	$(VENV)/bin/python -m pip install --quiet --constraint envs/constraints.txt --editable .
	$(VENV)/bin/python -m pip check
	@touch $@

$(INSTALLED): $(RUNS)
	$(VENV)/bin/python -m pip install --quiet --constraint envs/constraints.txt --editable '.[dev,slurm]'
	$(VENV)/bin/python -m pip check
	@touch $@

$(DOCUMENTED): $(RUNS)
	$(VENV)/bin/python -m pip install --quiet --constraint envs/constraints.txt --editable '.[docs]'
	$(VENV)/bin/python -m pip check
	@touch $@

demo: $(RUNS)  ## run the study quickstart and write its report
	dp-leakage demo
	@echo "Open results/quickstart/report.html"

smoke: $(RUNS)  ## import every module and run a small study, in a new .venv with only what a run needs
	python -c 'import importlib, pkgutil, dp_leakage; [importlib.import_module(found.name) for found in pkgutil.walk_packages(dp_leakage.__path__, "dp_leakage.")]'
	dp-leakage demo --scale smoke

new-study: $(RUNS)  ## dp-leakage new: NAME= DATA= LABEL= …
audit-model: $(RUNS)  ## dp-leakage attack: NAME= OUTPUTS= …
audit-training: $(RUNS)  ## dp-leakage audit: TRAIN= EPSILON= …
release: $(RUNS)  ## dp-leakage release: STUDY= CELL= …
share: $(RUNS)  ## dp-leakage share: STUDY= TO= …
$(COMMANDS):
	@python -m dp_leakage.commands.by_make $@

test: $(INSTALLED)  ## the tests (minutes)
	pytest -n 2 --dist loadfile --no-loadscope-reorder --timeout 600

wheel: $(INSTALLED)  ## build the wheel and run it in an environment of its own, in an empty folder
	pytest -m slow tests/test_wheel.py

test-long: $(INSTALLED)  ## whole studies at smoke scale, kills, full disks and damaged files (tens of minutes)
	pytest -m 'slow or study or faults'

test-fuzz: $(INSTALLED)  ## test hostile input: known cases and a thousand generated ones (minutes)
	pytest -m fuzz tests/hostile

test-slurm: $(INSTALLED)  ## test on a SLURM cluster of one node, which this sets up (Debian or Ubuntu, root; half an hour)
	pytest -m slurm tests/slurm

coverage: $(INSTALLED)  ## the tests, and which lines of the package they reach (longer than `make test`)
	pytest -n 2 --dist loadfile --no-loadscope-reorder --cov=dp_leakage --cov-report=term:skip-covered

lint: $(INSTALLED)  ## ruff, mypy, codespell, snakefmt, snakemake --lint
	ruff check .
	ruff format --check .
	mypy
	codespell README.md CONTRIBUTING.md SECURITY.md CHANGELOG.md docs src workflow benchmarks
	snakefmt --check Snakefile workflow
	snakemake --lint

format: $(INSTALLED)  ## put every file in the house style
	ruff check --fix .
	ruff format .
	snakefmt Snakefile workflow

tag:  ## tag this commit with its version, if CHANGELOG.md and CITATION.cff name it (CONTRIBUTING.md#release)
	@.ci/tag

publish:  ## print the steps that publish the tagged version to an index and a container registry; .ci/publish --run runs them
	@.ci/publish

bench: $(INSTALLED)  ## the trainer against plain PyTorch and Opacus
	python benchmarks/trainer.py

ranking: $(RUNS)  ## every membership attack on four data sets, undefended and at ε = 8: docs/results/ranking.md [DATA_DIR=data SCALE=small PEERS=folders of other tools' code]
	@mkdir -p build
	python benchmarks/ranking.py "$$DATA_DIR" --scale "$$SCALE" --peers "$$PEERS" > build/ranking.md
	mv build/ranking.md docs/results/ranking.md

bench-all: bench  ## every benchmark
	python benchmarks/vmf_noise.py
	python benchmarks/membership.py
	python benchmarks/attacks.py mlp
	python benchmarks/attacks.py softmax_regression
	python benchmarks/dag.py
	python benchmarks/jobs.py
	python benchmarks/watch.py

reference: $(INSTALLED)  ## renew docs/reference.md from the sections and registries
	python -m dp_leakage.reference > docs/reference.md

docs: $(DOCUMENTED)  ## build the documentation as a site in site/, which opens without a network
	NO_MKDOCS_2_WARNING=1 mkdocs build --quiet
	@echo "Open site/index.html"

papers: $(INSTALLED)  ## renew docs/results/papers.md, the papers' pages and the counts in README: every claim and printed number beside ours
	python -m dp_leakage.papers docs/results

constraints:  ## renew envs/constraints.txt from a fresh environment, and the environment of jobs from it
	rm -rf build/constraints && $(PYTHON) -m venv build/constraints
	build/constraints/bin/pip install --quiet torch==2.13.0 '.[dev,docs,slurm]'
	(echo "# What the default install uses: exact versions, for pip's --constraint. Ranges are in pyproject.toml."; \
	 echo "# Made by 'make constraints' in a fresh environment."; \
	 build/constraints/bin/pip freeze | grep -v -i '^dp.leakage' | sed 's/+cpu$$//') > envs/constraints.txt
	build/constraints/bin/python envs/write.py

clean:  ## remove .venv and caches; results stay
	rm -rf $(VENV) build .pytest_cache .ruff_cache .mypy_cache .hypothesis
