# Seqscope. `make` alone lists the targets. Needs Python 3.11 to 3.14; everything else goes into .venv.

VENV     := .venv
PYTHON   := $(VENV)/bin/python
SEQSCOPE := $(PYTHON) -m engine
WORDS    := build/words/minilm/words.json
SECONDS_SINCE = $$(( $$(date +%s) - $(1) ))
.SHELLFLAGS := -ec

# Where the app listens. HOST=0.0.0.0 opens it to other machines.
HOST := localhost
PORT := 8501
ifneq ($(shell test "$(PORT)" -ge 1 -a "$(PORT)" -le 65535 2>/dev/null && echo port),port)
$(error PORT=$(PORT) is no port: give a number from 1 to 65535)
endif

# A server that may not listen there would end in a traceback.
define CAN_LISTEN
import socket, sys
host, port = sys.argv[1:]
door = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
door.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
try:
    door.bind((host, int(port)))
except OSError as error:
    sys.exit(f"make: the app cannot listen on HOST={host} PORT={port} ({error.strerror}): give another HOST or PORT")
endef
export CAN_LISTEN

# The first Python on this machine that is new enough, and for which torch has a build.
define FIND_PYTHON
for python in python3.11 python3 python3.12 python3.13 python3.14; do \
  $$python -c 'import sys, ensurepip; sys.exit(not (3, 11) <= sys.version_info < (3, 15))' 2>/dev/null && break; python=; \
done; \
test -n "$$python" || { echo "make: no Python from 3.11 to 3.14 that can make an environment" \
  "(Debian: apt-get install python3-venv; macOS: brew install python@3.13)" >&2; exit 1; }
endef

# The app goes on without it where it cannot be had.
EXPORT_WORDS = $(SEQSCOPE) embed --encoder minilm --export build/words && touch $(WORDS) || echo "The app goes on without a text encoder."

# A shell has what it starts with & pass over Ctrl-C, so that it would go on after the app.
HEED_INTERRUPT = import os, signal, sys; signal.signal(signal.SIGINT, signal.SIG_DFL); os.execvp(sys.argv[1], sys.argv[1:])

# uv, or pip where there is no uv; .ci/install.py says how.
INSTALL = $(FIND_PYTHON); $$python .ci/install.py $(VENV)

# Containers like to forbid Python to keep its bytecode, and each start would then compile some 800 modules anew.
export PYTHONDONTWRITEBYTECODE :=
COMPILE = $(PYTHON) -c 'from app.serve import prepare, read_pages; prepare(); read_pages()' 2>/dev/null || echo "The app's first start takes some seconds longer."

# An environment whose Python has gone, after an upgrade of the system say, is made again.
ifneq ($(shell $(PYTHON) -c 'print("works")' 2>/dev/null),works)
.PHONY: $(VENV)/.run $(VENV)/.dev
endif

.DEFAULT_GOAL := help
.NOTPARALLEL:
.PHONY: help run test test-all install install-dev chromium lint style types format pytest coverage lock exports bench screenshot clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

run: install ## serve the app with the embedded datasets on http://localhost:8501 (HOST=, PORT=)
	@$(PYTHON) -c "$$CAN_LISTEN" "$(HOST)" $(PORT)
	@test -e $(WORDS) || nice $(PYTHON) -c '$(HEED_INTERRUPT)' sh -c '$(EXPORT_WORDS)' & \
	exec $(PYTHON) -m streamlit run app/serve.py --server.address=$(HOST) --server.port=$(PORT)

# Types and import contracts keep one core busy for a minute: they go on beside the tests, and are told of when those are over.
test: ## install, then lint, types, import contracts and tests
	@start=$$(date +%s); mkdir -p build; \
	$(MAKE) --no-print-directory install-dev chromium style && { \
	  $(MAKE) --no-print-directory types >build/types.txt 2>&1 & types=$$!; failed=; \
	  $(MAKE) --no-print-directory pytest || failed=1; \
	  wait $$types || failed=1; cat build/types.txt; test -z "$$failed"; \
	} && \
	echo "make test: everything passed in $(call SECONDS_SINCE,$$start) s"

test-all: install-dev chromium lint coverage ## the same with what takes long, and what it all reaches

# --- environment -----------------------------------------------------------------------------------------------------------

install: $(VENV)/.run ## the environment that `make run` needs
install-dev: $(VENV)/.dev ## the environment that `make test` needs

$(VENV)/.run: pyproject.toml requirements.lock
	@$(INSTALL) text && { $(COMPILE); } && touch $@

$(VENV)/.dev: pyproject.toml requirements.lock
	@$(INSTALL) dev text && touch $(VENV)/.run $@

# The browser tests drive Debian's chromium. Where it is missing and cannot be had they are skipped, but never in CI.
chromium: install-dev
	@if $(PYTHON) -c 'import sys; from engine.commands.doctor import find_chromium; sys.exit(find_chromium() is None)'; then :; \
	elif [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
	  echo "Installing chromium for the browser tests …"; \
	  { apt-get -qq update && for package in chromium-headless-shell chromium; do \
	    DEBIAN_FRONTEND=noninteractive apt-get -qq install -y --no-install-recommends $$package && break; done; } >/dev/null \
	  || echo "Browser tests: chromium could not be installed."; \
	else echo "Browser tests: chromium not found, they will be skipped (apt-get install chromium)."; fi

lock: install-dev ## renew requirements.lock from pyproject.toml
	$(INSTALL) --lock

# The text encoder as the app runs it, for items that are new to a catalogue: made while the app serves already.
$(WORDS): $(VENV)/.run
	@$(EXPORT_WORDS)

# --- quality ---------------------------------------------------------------------------------------------------------------

lint: style types ## ruff, mypy, import contracts

style: install-dev
	$(PYTHON) -m ruff check .
	$(PYTHON) -m ruff format --check .

types: install-dev
	$(PYTHON) -m mypy
	$(PYTHON) -c 'from importlinter.cli import lint_imports_command; lint_imports_command()' --no-logo

format: install-dev ## put the code into its form
	$(PYTHON) -m ruff check --fix --exit-zero .
	$(PYTHON) -m ruff format .

# Each file stays with one worker, which makes its fixtures once; tests/conftest.py says which come first. Many tests wait for
# processes and pages: three workers keep two cores busy, and a fourth takes more for itself than it adds. The app's jobs lower
# their own priority by up to 10, to 19 at most: from 16 on they get their share beside tests that wait for them. In CI a test that
# fails runs again, twice at most, and the summary lists it as rerun: a race that a busy machine loses once in 5,000 tests is to be
# read there and mended, not to hide what else was found.
PYTEST = OMP_NUM_THREADS=1 nice -n $$((16 - $$($(PYTHON) -c 'import os; print(os.nice(0))'))) $(PYTHON) -m pytest --numprocesses 3 --dist loadfile --no-loadscope-reorder $(if $(CI),--reruns 2 --reruns-delay 2 --rerun-show-tracebacks -rR)

pytest: install-dev ## the tests alone
	$(PYTEST) -m "not long"

# By itself, because tracing nearly doubles what the tests compute in Python.
coverage: install-dev ## all tests, long ones too, with a report of what they reach: 93 % at least
	$(PYTEST) --cov --cov-report=term --cov-fail-under=93

# --- what the repository carries, rebuilt ------------------------------------------------------------------------------------

exports: install ## rebuild what is embedded: exports/$(DATASET) (DATASET=films: hours, sample: minutes)
	$(PYTHON) -m benchmarks.build_exports $(DATASET)

bench: install ## measure speed and quality
	$(PYTHON) -m benchmarks.training_speed
	$(PYTHON) -m benchmarks.fit_speed
	$(PYTHON) -m benchmarks.serving_speed
	$(PYTHON) -m benchmarks.app_speed

screenshot: install-dev chromium ## renew the pictures of all pages (docs/pages.md)
	$(PYTHON) -m docs.screenshot

clean: ## remove the environment, caches and build folders
	rm -rf $(VENV) build *.egg-info .coverage .pytest_cache .mypy_cache .ruff_cache .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
