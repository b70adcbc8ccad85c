# Every target sets up what it needs: a virtual environment in .venv, refreshed when pyproject.toml changes.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.installed
WORKERS ?= 2
HISTORIES ?= 1000
SEED ?= 2
# Servers are killed in these tests, and sockets die with them, some after the last test.
SEVERED := -W ignore::pytest.PytestUnraisableExceptionWarning

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help demo test verify promtool generate e2e e2e-full e2e-node properties image bench bench-agent clean

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "  make %-11s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: $(READY) ## Run the aggregator on a simulated cluster, until Ctrl-C (ARGS="--for 30s --scenario s2")
	$(BIN)/gputally demo $(ARGS)

test: $(READY) ## Run all tests that need no cluster, in some six minutes
	$(BIN)/pytest -q -n $(WORKERS) -m "not e2e and not campaign and not node" $(ARGS)

verify: $(READY) ## Check all that needs no cluster: code, docs, dashboards and alerts; changes nothing (needs Go once)
	-@$(MAKE) --no-print-directory promtool
	$(BIN)/python -m hack.verify

promtool: $(READY) ## Build Prometheus' tool that checks rules, unless there is one (needs Go)
	@command -v promtool > /dev/null || $(BIN)/python -m hack.build promtool

generate: $(READY) ## Write docs/metrics.md, the tables of flags, dashboards and rules anew
	$(BIN)/python -m hack.generate

e2e: $(READY) ## Run the tests on a real control plane, which is built from source first (needs Go)
	$(BIN)/python -m hack.build
	$(BIN)/python -m hack.build kube-state-metrics
	GPUTALLY_E2E=1 $(BIN)/pytest -q -m "e2e and not campaign and not node" $(SEVERED) $(ARGS)

e2e-full: e2e properties ## The same, long random histories, campaigns of crashes and hostility (some 80 minutes; SEED=3)
	GPUTALLY_E2E=1 GPUTALLY_CAMPAIGN_SEED=$(SEED) $(BIN)/pytest -q -m campaign $(SEVERED)

e2e-node: $(READY) ## Run the tests on a real kubelet with containerd: agent, image and chart (needs root, Debian)
	$(BIN)/python -m hack.build etcd kwok kube-apiserver kube-scheduler kube-controller-manager kubelet kubectl helm
	GPUTALLY_E2E_NODE=1 $(BIN)/pytest -q -m node $(SEVERED) $(ARGS)

image: $(READY) ## Write the container image to build/gputally.tar without a container engine (needs Debian)
	@mkdir -p build
	$(BIN)/python -m hack.image build/gputally.tar

bench: $(READY) ## Measure on a real API server, in about ten minutes (needs Go once; ARGS="--steps 1000 --no-ksm")
	$(BIN)/python -m labs.bench $(ARGS)

bench-agent: $(READY) ## Measure the agent with 8 GPUs and with 64 slices, in some 20 minutes (needs gcc; ARGS="--minutes 1")
	$(BIN)/python -m labs.bench.agent $(ARGS)

properties: $(READY) ## Run the properties of the accounting on 1,000 random histories each, of some 90 steps (HISTORIES=5000)
	GPUTALLY_EXAMPLES=$(HISTORIES) $(BIN)/pytest -q -n $(WORKERS) tests/property $(ARGS)

clean: ## Remove the virtual environment, caches and build outputs
	rm -rf $(VENV) build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(READY): pyproject.toml simulator/pyproject.toml
	@echo "Setting up $(VENV), once, in about 40 s: creating the environment ..."
	@$(PYTHON) -m venv $(VENV)
	@echo "... installing gputally and its tools"
	@$(BIN)/pip install --quiet --disable-pip-version-check --editable '.[dev]' --editable ./simulator
	@echo "... done"
	@touch $@
