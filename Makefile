# Two commands do everything on a fresh machine with Python 3.11+ and make:
#   make bench    create .venv, install, run the quick suite with its table and HTML report
#   make test     the same, then the tests
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
PACKAGES := formulations solvers heuristics catalogue benchmarks tools
FOLDERS := $(PACKAGES) interface studies tests
SCRIPTS := mkdocs_hooks.py .github/library_submission.py
# What is compiled of the sources is kept: the tests start some 2,000 processes, which load it
unexport PYTHONDONTWRITEBYTECODE

.PHONY: install bench test unit lowest gate lint types sources docs clean

install: $(VENV)/.installed

# What `make bench` needs: bytecode is made where a module is first imported, not of all 20,000 of them
$(VENV)/.runs: pyproject.toml
	@$(PYTHON) -c 'import sys; sys.version_info >= (3, 11) or sys.exit("schedgap needs Python 3.11 or newer: make PYTHON=python3.11 ...")'
	@echo "installing schedgap and what it needs into $(VENV)"
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile -e .
	@touch $@

$(VENV)/.installed: $(VENV)/.runs
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile -e '.[test,lint]'
	touch $@

bench: $(VENV)/.runs
	$(BIN)/schedgap bench --out results

test: bench unit

unit: install
	$(BIN)/python -m pytest -n 2 --dist loadfile

# The tests of engines once more, on the lowest versions that pyproject.toml lets in (install has the newest)
LOWEST := build/lowest
lowest: install
	rm -rf $(LOWEST)
	grep -oE '"(highspy|pulp|pyscipopt)>=[0-9.]+' pyproject.toml | tr -d '"' | sed 's/>=/==/' | sort -u \
		| xargs $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --target $(LOWEST)
	SCHEDGAP_ENGINES=lowest PYTHONPATH=$(abspath $(LOWEST)) $(BIN)/python -m pytest -n 2 --dist loadfile \
		tests/unit/test_engines_*.py tests/unit/test_column_generation.py tests/cross/test_engines_agree.py

# All answers against exhaustive searches on tiny instances: half with a fixed seed, half with a fresh one
gate: install
	PYTHONPATH=tests $(BIN)/python -m gate
	SCHEDGAP_LISTINGS=300 $(BIN)/python -m pytest -n 2 tests/cross/test_judge_reasons.py

lint: install
	$(BIN)/ruff check $(FOLDERS) $(SCRIPTS)
	$(BIN)/ruff format --check $(FOLDERS) $(SCRIPTS)

# The packages under their import names, for tools that do not follow mapped folders
sources:
	rm -rf build/types
	mkdir -p build/types
	cp -r interface build/types/schedgap
	cp -r $(PACKAGES) build/types/schedgap/

types: install sources
	MYPYPATH=build/types $(BIN)/mypy -p schedgap
	MYPYPATH=build/types $(BIN)/mypy studies $(SCRIPTS)

# The documentation site, its notebooks executed and its links checked: build/site/index.html
docs: install sources
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[docs]'
	PATH="$(abspath $(BIN)):$$PATH" NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --quiet

clean:
	rm -rf $(VENV) build dist results *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
