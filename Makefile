# Every target makes .venv and installs what it needs into it; a bare clone, python3 (3.11+) and make are enough.
PYTHON ?= python3
VENV := .venv
SCRIPTS := $(if $(filter Windows_NT,$(OS)),Scripts,bin)
BIN := $(VENV)/$(SCRIPTS)
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check

.PHONY: help setup demo doctor test test-all test-extras soak soak-tests test-oldest test-cpus test-busy coverage mutants fuzz lint check-texts update-docs format \
  bench bench-compare rivals benchopt reproduce docs dist release clean

help:
	@echo "make demo       does direct training pay? a table, a verdict and a page on two data sets (under 3 minutes)"
	@echo "make test       every public behaviour once (3 minutes on two cores)"
	@echo "make test-all   all tests: every combination, clusters, processes, signals, packaging"
	@echo "make test-extras  objectives with CatBoost and PyTorch, and benchopt; it installs them (TORCH=torch==2.13.0)"
	@echo "make soak       all tests with many random examples, fuzzing, busy and emulated processors (hours)"
	@echo "make test-oldest  the quick tests with the oldest versions of the dependencies"
	@echo "make test-cpus  the quick tests as other processors run them (CPUS=\"generic haswell\", TESTS=tests/solvers)"
	@echo "make test-busy  tests of threads, signals and time limits beside four busy processes (ARGS=--speed 0.1)"
	@echo "make coverage   branches that tests take, kernels uncompiled (an hour on two cores)"
	@echo "make mutants    which changes of risks and measures each tier notices (hours; ARGS=\"--sample 100\")"
	@echo "make fuzz       hostile files and arguments, coverage-guided (ARGS=--seconds 600)"
	@echo "make lint       ruff, mypy"
	@echo "make check-texts  sentences, links and tables of the pages (a minute)"
	@echo "make update-docs  writes the tables of the pages, their outputs and the man page again (minutes)"
	@echo "make bench      the figures of the README and the docs"
	@echo "make bench-compare  is the working tree slower than BASE (origin/main)? fails if so"
	@echo "make rivals     other libraries on the same splits; needs SCORELINE_DATA, and hours with all sets (ARGS=...)"
	@echo "make benchopt   scoreline, LIBLINEAR, scikit-learn and dlib as a benchopt benchmark (ARGS=-d ... -s ...)"
	@echo "make reproduce  tables and figures of five papers (NAME=zhang2012: of one; ARGS=--quick: a minute instead of hours)"
	@echo "make docs       HTML documentation in docs/_build"
	@echo "make doctor     versions, threads, caches and devices, to paste into an issue"
	@echo "make dist       the wheel and the source archive in dist, the same bytes for the same commit"
	@echo "make release VERSION=0.1.0  check everything, set version and dates, commit, tag (MAINTAINERS.md)"

$(VENV)/made:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "scoreline needs Python 3.11 or newer; $(PYTHON) is $$($(PYTHON) --version). Try: make PYTHON=python3.11 ..."; exit 1; }
	@$(PYTHON) -m venv $(VENV)
	@touch $@

$(VENV)/core: $(VENV)/made pyproject.toml
	@echo "installing scoreline into $(VENV) ..."
	@$(PIP) --editable .
	@touch $@

$(VENV)/%: $(VENV)/core pyproject.toml
	@echo "installing what 'make' needs for: $* ..."
	@$(PIP) --editable ".[$*]"
	@touch $@

setup: $(VENV)/core $(VENV)/test

demo: $(VENV)/core $(VENV)/cli
	@mkdir -p demo-output
	@$(BIN)/scoreline compare demo:fraud --measure roc_auc --report demo-output/fraud.html
	@$(BIN)/scoreline compare demo:breast-cancer --measure f1 --report demo-output/breast-cancer.html

doctor: $(VENV)/core $(VENV)/cli
	@$(BIN)/scoreline doctor

# Two processes on two cores: more threads of BLAS would wait for each other, busily. Targets that run the quick tests give it one
# thread, test-all leaves it all of them.
test: $(VENV)/core $(VENV)/test
	@OPENBLAS_NUM_THREADS=1 SCORELINE_TIER=quick $(BIN)/python -m pytest -n 2 --dist worksteal

test-all: $(VENV)/core $(VENV)/test
	@SCORELINE_TIER=all $(BIN)/python -m pytest -n 2 --dist worksteal

# CatBoost and PyTorch are large: 1.2 GB in .venv. They come last, because tests of devices also run on PyTorch if it is there.
TORCH ?= torch>=2.13,<2.14
$(VENV)/extras: $(VENV)/core $(VENV)/test
	@echo "installing CatBoost, PyTorch and benchopt into $(VENV) ..."
	@$(PIP) "catboost>=1.2.10" "benchopt>=1.10" "$(TORCH)"
	@touch $@

test-extras: $(VENV)/extras
	@SCORELINE_TIER=all $(BIN)/python -m pytest -n 2 --dist worksteal tests/objectives tests/documentation/test_doc_blocks.py \
	  tests/benchmarks/test_benchopt.py

soak: fuzz soak-tests
	@$(MAKE) test-busy test-cpus

soak-tests: $(VENV)/core $(VENV)/test
	@SCORELINE_TIER=soak $(BIN)/python -m pytest -n 2 --dist worksteal

# The lower limits of pyproject.toml; tools of tests are the newest. What the documentation prints is that of the newest versions.
$(VENV)-oldest/made: pyproject.toml .ci/oldest.py
	@$(PYTHON) -m venv $(VENV)-oldest
	@$(PYTHON) .ci/oldest.py > $(VENV)-oldest/limits.txt
	@echo "installing the oldest versions into $(VENV)-oldest ..."
	@$(VENV)-oldest/$(SCRIPTS)/python -m pip install --quiet --disable-pip-version-check -c $(VENV)-oldest/limits.txt --editable ".[test]"
	@touch $@

test-oldest: $(VENV)-oldest/made
	@OPENBLAS_NUM_THREADS=1 $(VENV)-oldest/$(SCRIPTS)/python -m pytest -n 2 --dist worksteal tests

test-cpus: $(VENV)/core $(VENV)/test
	@$(BIN)/python .ci/cpus.py $(if $(CPUS),--cpus $(CPUS)) -- $(TESTS)

test-busy: $(VENV)/core $(VENV)/test
	@$(BIN)/python .ci/busy.py $(ARGS)

coverage: $(VENV)/core $(VENV)/test $(VENV)/quality
	@$(BIN)/python .ci/coverage.py

mutants: $(VENV)/core $(VENV)/test $(VENV)/quality
	@$(BIN)/python .ci/mutants.py $(ARGS)

fuzz: $(VENV)/core $(VENV)/cli $(VENV)/fuzz
	@$(BIN)/python fuzz/run.py $(ARGS)

lint: $(VENV)/core $(VENV)/test
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy

# Lengths of sentences, words, links, and tables that are made from the code: what a change of a page can break.
check-texts: $(VENV)/core $(VENV)/test
	@SCORELINE_TIER=quick $(BIN)/python -m pytest -q -n 2 tests/documentation/test_prose.py tests/documentation/test_source_prose.py \
	  tests/documentation/test_doc_links.py tests/documentation/test_api_page.py tests/documentation/test_reference_tables.py \
	  tests/documentation/test_docstrings.py tests/package/test_architecture.py

update-docs: $(VENV)/core $(VENV)/test
	@$(BIN)/python docs/tables.py
	@PYTHONPATH=tests $(BIN)/python tests/cli/test_command_line_page.py
	@PYTHONPATH=tests $(BIN)/python tests/documentation/test_doc_outputs.py

format: $(VENV)/core $(VENV)/test
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .

bench: $(VENV)/core $(VENV)/bench
	@$(BIN)/python benchmarks/run.py

bench-compare: $(VENV)/core $(VENV)/bench
	@$(BIN)/python benchmarks/revisions.py --base $(or $(BASE),origin/main) --head $(or $(HEAD),.)

# liblinear-official is compiled at installation: without a compiler it is skipped by name, as any rival that is not there.
$(VENV)/liblinear: $(VENV)/core $(VENV)/bench $(VENV)/rivals
	@$(PIP) "liblinear-official>=2.50" || echo "liblinear-official was not installed: it wants a C++ compiler"
	@touch $@

rivals: $(VENV)/liblinear
	@$(BIN)/python benchmarks/side_by_side.py $(ARGS)

# One thread, as some rivals know no other number.
benchopt: $(VENV)/liblinear
	@OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 NUMBA_NUM_THREADS=1 $(BIN)/benchopt run benchmarks/benchmark_measures -r 1 --no-display \
	  $(or $(ARGS),-d simulated -d breast-cancer)

reproduce: $(VENV)/core $(VENV)/cli
	@$(BIN)/python -m studies $(NAME) $(ARGS)

docs: $(VENV)/core $(VENV)/doc
	@$(BIN)/python -m sphinx -W --keep-going -q docs docs/_build/html
	@echo "open docs/_build/html/index.html"

# The date in the archives is that of the commit, so that anybody can build the same bytes again.
dist: $(VENV)/core $(VENV)/test
	@$(if $(TAG),$(BIN)/python .ci/release.py --tag "$(TAG)")
	@rm -rf dist
	@SOURCE_DATE_EPOCH=$$(git log -1 --format=%ct) $(BIN)/python -m build --outdir dist

release: $(VENV)/core $(VENV)/test
	@$(BIN)/python .ci/release.py $(VERSION) $(ARGS)

clean:
	rm -rf $(VENV) $(VENV)-oldest mutants build dist docs/_build docs/gallery docs/notebooks demo-output bench-output
