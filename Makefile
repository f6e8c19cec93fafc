# make demo and make test need Python >= 3.11 and an internet connection the first time; uv is used where it is there.
# The set-up lives in .venv; make clean removes it.

PYTHON ?= $(shell for name in python3 python3.14 python3.13 python3.12 python3.11 python; do \
  $$name -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && { echo $$name; break; }; done)
UV := $(shell uv --version >/dev/null 2>&1 && echo uv)
BIN := .venv/bin
INSTALL = $(if $(UV),uv pip install --quiet --python $(BIN)/python,$(BIN)/python -m pip install --quiet) -c constraints.txt
WORKERS ?= 2
# The tests load every compiled library into one process; glibc keeps little room for their thread-local data.
ROOM := GLIBC_TUNABLES=glibc.rtld.optional_static_tls=65536
EVERYTHING := '.[cluster,documents,dense,fast,graph,keyring,lab,neo4j,office,openapi,postgres,solver,warehouse]' --group dev

.PHONY: demo mcp install test test-all test-314 check fix bench docs lock release servers servers-stop clean

demo: .venv/base
	@$(BIN)/decisor demo

# The command for a client of the Model Context Protocol, and the lines that give it to one (docs/tutorials/mcp.md).
mcp: .venv/mcp
	@echo "Decisor is ready for an MCP client. With Claude Code:"
	@echo "claude mcp add decisor -- $(CURDIR)/$(BIN)/decisor mcp --demo"
	@echo 'claude "Which supplier should we drop? Use decisor."'

# More of it in .venv: make install EXTRAS=documents,serve (docs/start.md says what there is).
install: | .venv/bin/python
	@$(INSTALL) -e '.$(if $(EXTRAS),[$(EXTRAS)])'

test: .venv/dev
	$(ROOM) $(BIN)/python -m pytest -n $(WORKERS) --dist worksteal -m "$(if $(ALL),slow or not slow,not slow)" $(ARGS)

test-all:
	@$(MAKE) --no-print-directory test ALL=1

# What differs by the version of Python, on 3.14, in a tree of Debian's unstable suite (root; made once, and kept).
test-314:
	tests/servers/python314.sh $(ARGS)

check: .venv/dev
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

fix: .venv/dev
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

# The quick measurements as one page, build/bench.html; docs/performance.md names the others.
bench: .venv/dev
	@$(BIN)/python performance/bench.py

# The documentation as a site, build/docs/site: it fetches nothing, and can be read and searched from the folder.
docs: .venv/docs
	@$(BIN)/python docs/pages/make.py
	@$(BIN)/python -m zensical build -f build/docs/zensical.toml

# PostgreSQL, MariaDB, MySQL and Neo4j for the tests: installed where they are missing (Debian, Ubuntu), on this machine.
servers:
	tests/servers/databases.sh start

servers-stop:
	tests/servers/databases.sh stop

# constraints.txt holds the versions that a set-up gets: the newest that fit pyproject.toml, the day this was last called.
lock:
	$(PYTHON) -m venv .venv/lock
	.venv/lock/bin/python -m pip install --quiet --upgrade 'pip>=25.1'
	.venv/lock/bin/python -m pip install --quiet -e $(EVERYTHING)
	.venv/lock/bin/python -m pip freeze --exclude-editable >constraints.txt
	rm -rf .venv/lock

# The sdist and the wheel in dist/, checked, and tried in an empty account. Publishes nothing.
release:
	@PYTHON=$(PYTHON) .ci/release

clean:
	rm -rf .venv

.venv/bin/python:
	@echo "Setting up .venv: a minute or two, once."
	@test -n "$(PYTHON)$(UV)" || { echo "Decisor needs Python 3.11 or newer: install it, or name it: make PYTHON=/path/to/python3.11"; exit 1; }
ifeq ($(UV),uv)
	@uv venv --quiet --allow-existing --python '>=3.11' .venv
else
	@$(PYTHON) -m venv .venv || { rm -rf .venv; echo "Python's venv module is missing: on Debian or Ubuntu, apt-get install python3-venv"; exit 1; }
	@$(BIN)/python -m pip install --quiet --upgrade 'pip>=25.1'
endif

# What each set-up installs of this folder; .venv/dev has all that the others have.
.venv/base: PARTS := .
.venv/mcp: PARTS := '.[mcp]'
.venv/docs: PARTS := . --group docs
.venv/dev: PARTS := $(EVERYTHING)
.venv/base .venv/mcp .venv/docs .venv/dev: pyproject.toml constraints.txt Makefile | .venv/bin/python
	@$(INSTALL) -e $(PARTS)
	@touch $@ $(if $(filter .venv/dev,$@),.venv/base .venv/mcp .venv/docs)
