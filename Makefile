# Every target sets up what it needs from Python 3.11+, make and the package registries.
PYTHON ?= python3
# The version of uv and the hashes of its files, as uv.lock has them.
UV_LOCKED := import tomllib; \
	uv = next(one for one in tomllib.load(open("uv.lock", "rb"))["package"] if one["name"] == "uv"); \
	print("uv==" + uv["version"], *("--hash=" + file["hash"] for file in [uv["sdist"], *uv["wheels"]]))
VENV := .venv
BIN := $(VENV)/bin
UV := $(BIN)/uv
STAMP := $(VENV)/.synced
ARGS ?=
# Images often set it: each of the thousand processes that the tests start would compile all of its modules.
export PYTHONDONTWRITEBYTECODE :=
# More than the cores of a small machine: many tests wait for leases, deadlines and processes.
JOBS ?= 4

# What the checks say comes in one piece each, where make can do that.
IN_ONE_PIECE := $(if $(filter output-sync,$(.FEATURES)),--output-sync=target)

.PHONY: run test check explore rounds bench lint lint-python lint-types lint-proto lint-scripts lint-go lint-java lint-node lint-rust proto manifests dist images images-check docs release-check clean

$(UV):
	$(PYTHON) -m venv $(VENV)
	$(PYTHON) -c '$(UV_LOCKED)' > $(VENV)/uv.txt
	$(BIN)/pip install --quiet --no-deps --require-hashes --requirement $(VENV)/uv.txt

$(STAMP): pyproject.toml uv.lock $(wildcard core/*/pyproject.toml) plugin-sdk/python/pyproject.toml proto/python/pyproject.toml out-of-tree-plugins/gpu-share/pyproject.toml \
		out-of-tree-plugins/http-extender/pyproject.toml out-of-tree-plugins/queues/pyproject.toml | $(UV)
	$(UV) sync --frozen --quiet --no-python-downloads
	@touch $(STAMP)

run: $(STAMP)
	$(BIN)/berth demo $(ARGS)

test: $(STAMP)
	$(BIN)/python -m pytest -n $(JOBS) --dist worksteal $(ARGS)

# Format, lint, types and the nearest tests of FILES, or of what differs from HEAD.
check: $(STAMP)
	$(BIN)/python -m tests.check $(FILES)

# Again and again, in another order each time; a failure ends it, and says how to have it again.
SEED ?= $(shell date +%s)
ROUNDS ?= 1
define in_rounds
@for seed in $$(seq $(SEED) $$(($(SEED) + $(ROUNDS) - 1))); do \
	$(BIN)/python -m pytest -n $(JOBS) --dist worksteal --randomly-seed=$$seed $(1) $(ARGS) \
	|| { echo "found with seed $$seed; again: make $@ ROUNDS=1 SEED=$$seed JOBS=$(JOBS) ARGS='$(ARGS)'"; exit 1; }; \
done
endef

# The property tests with examples that `make test` does not try.
explore: $(STAMP)
	$(call in_rounds,-m hypothesis --hypothesis-profile=explore --hypothesis-seed=$$seed)

# The property tests, as `make test` has them: neither order nor time decides what they find.
# They wait for nothing: a worker for each core.
rounds: ROUNDS = 50
rounds: JOBS = $(shell nproc)
rounds: $(STAMP)
	$(call in_rounds,-m hypothesis $$(grep -rl --include='test_*.py' '^from hypothesis' tests))

bench: $(STAMP)
	$(BIN)/python -m tests.benchmarks $(ARGS)

# One wait for compilers and registries, not one after the other: the longest begin first.
lint: $(STAMP)
	@$(MAKE) --no-print-directory --jobs=4 $(IN_ONE_PIECE) lint-go lint-proto lint-rust lint-types lint-java lint-node lint-scripts lint-python

lint-python: $(STAMP)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/lint-imports

lint-types: $(STAMP)
	$(BIN)/mypy

lint-proto: $(STAMP)
	$(BIN)/python -m tests.proto_check

lint-scripts: $(STAMP)
	$(BIN)/python -m tests.script_check

lint-go: $(STAMP)
	$(BIN)/python -m tests.go_toolchain

lint-java: $(STAMP)
	$(BIN)/python -m tests.java_toolchain

lint-node: $(STAMP)
	$(BIN)/python -m tests.node_toolchain

lint-rust: $(STAMP)
	$(BIN)/python -m tests.rust_toolchain

proto: $(STAMP)
	$(BIN)/python -m tests.proto_check --write

manifests: $(STAMP)
	$(BIN)/python -m tests.manifests kustomize

# All files of a release: docs/releasing.md. DIST is emptied first.
DIST ?= dist
dist: $(STAMP)
	$(BIN)/python -m tests.release dist $(DIST)

# Images as OCI layouts, and the tests that build and start all of them: docs/decisions/0037-images.md.
images: $(STAMP)
	$(BIN)/python -m tests.release images $(DIST)/images $(ARGS)

images-check: $(STAMP)
	BERTH_EVERY_IMAGE=1 $(BIN)/python -m pytest tests/e2e/test_image_layouts.py tests/e2e/test_image_platforms.py \
		tests/e2e/test_installation.py tests/unit/images $(ARGS)

release-check: $(STAMP)
	$(BIN)/python -m tests.release check

# The site, with search that needs no server; a link that leads nowhere ends it.
docs: $(STAMP)
	$(BIN)/python -m tests.release.site build/pages
	$(BIN)/python -m tests.release.references build/pages
	$(UV) run --frozen --quiet --isolated --only-group docs \
		env NO_MKDOCS_2_WARNING=1 mkdocs build --strict --quiet --config-file docs/mkdocs.yml

clean:
	rm -rf $(VENV) dist node_modules .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache run build out-of-tree-plugins/without-sdk/go/pluginv1 \
		plugin-sdk/java/target plugin-sdk/java/template/target out-of-tree-plugins/data-locality/target
