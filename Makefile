# make run | test | lint | bench | fuzz | mutate | wheel | clean. The first one sets everything up.
BIN := .venv/bin
# Two workers use two cores; each engine process has its own torch threads besides.
WORKERS ?= 2

# Before Qt and torch are imported; for the tests tests/conftest.py sets both. Threads of torch that
# spin would stall a window beside them.
bench: export QT_QPA_PLATFORM := offscreen
run bench: export OMP_WAIT_POLICY := PASSIVE

.PHONY: run test suite lint bench fuzz mutate wheel system clean

run: .venv/run-installed
	@if [ -n "$$DISPLAY$$WAYLAND_DISPLAY" ] || [ "$$(uname)" = Darwin ]; then \
	    exec $(BIN)/tensorlab; \
	else \
	    echo "No display here (neither DISPLAY nor WAYLAND_DISPLAY is set): running the tour offscreen."; \
	    echo "It drives the same window through the whole main job; see tour/ when it is done."; \
	    exec $(BIN)/python -m tests.tour tour; \
	fi

# Pyright runs beside the tests: it uses one core for a minute.
test: .venv/test-installed
	$(MAKE) --no-print-directory -j2 lint suite

suite: .venv/test-installed
	$(BIN)/python -m pytest -n $(WORKERS) --dist loadfile

lint: .venv/test-installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports --no-logo
	$(BIN)/pyright

bench: .venv/bench-installed
	$(BIN)/python tests/bench/run.py

# Broken projects, weights and messages by the thousand; SEED chooses which.
SEED ?= 1
fuzz: .venv/test-installed
	$(BIN)/python tests/fuzz/run.py --seed $(SEED)
	TENSORLAB_EXAMPLES=5000 $(BIN)/python -m pytest --timeout 1200 -k "any or random" \
	    $$(grep -rl "from tests.examples import" tests --include="test_*.py")

# Small wrong edits in each package, and how many of them its tests notice. PACKAGE is a folder or a
# file, or several; SEED chooses the edits, COUNT says how many.
PACKAGE ?=
COUNT ?= 15
mutate: .venv/test-installed
	nice -n 5 $(BIN)/python -m tests.mutation.run --seed $(SEED) --count $(COUNT) \
	    $(if $(PACKAGE),--package "$(PACKAGE)")

wheel: .venv/test-installed
	$(BIN)/python -m hatchling build -t wheel -d dist

# Runs each time: it takes milliseconds and heals a machine that lost a library.
system:
	@.ci/system

.venv/bin/python: | system
	$$(.ci/python) -m venv .venv

# The stamps lie in the environment, so that they go when it goes.
.venv/run-installed: pyproject.toml .venv/bin/python | system
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable .
	@touch $@

.venv/test-installed: pyproject.toml .venv/bin/python | system
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[test]'
	@touch $@ .venv/run-installed

# Without its peers the bench measures ours alone, and says so.
.venv/bench-installed: .venv/test-installed
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[bench]' \
	    && touch $@ || echo "Peers cannot be installed here: the bench goes on without them."

clean:
	rm -rf .venv build dist tour .pytest_cache .ruff_cache .import_linter_cache
