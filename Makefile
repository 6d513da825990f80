# Needs Python 3.11–3.13 and Java 17 or 21, nothing else: .ci/setup makes .venv with everything pinned.
SHELL := bash
.DEFAULT_GOAL := help
.PHONY: help demo demo-cluster test test-all coverage test-cluster test-kubernetes truth faults bench pictures record-events test-matrix lint page clean

# Neither another Spark nor another Python may leak in.
unexport SPARK_HOME SPARK_CONF_DIR PYSPARK_PYTHON PYSPARK_DRIVER_PYTHON PYTHONPATH PYTHONHOME

SETUP := @.ci/setup
# spark-submit is in .venv/bin, and it looks for `python3` on the PATH.
RUN := @PATH="$(CURDIR)/.venv/bin:$$PATH"

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-15s %s\n", $$1, $$2 }' Makefile

demo: ## Run the example DAG for two days of real flights and show the lineage (build/demo)
	$(SETUP)
	$(RUN) sparklineage demo build/demo

demo-cluster: ## The demo on a real HDFS and YARN of this machine, drivers in containers (build/demo-cluster)
	$(SETUP)
	$(RUN) python -m tests.cluster.demo

# Modules stay whole, because what they share takes longer to make than their tests take; and in their
# order, or the modules with the fewest tests came last, which are those that start Spark.
ON_TWO_CORES := -n 2 --dist loadfile --no-loadscope-reorder

test: ## Run the tests on two cores, without those that take long; ARGS='-k merge' for some of them, ARGS='-n 0' one by one
	$(SETUP)
	$(RUN) python -m pytest $(ON_TWO_CORES) -m 'not cluster and not long' $(ARGS)

test-all: ## Run what a release runs: also the long tests, all 200 random histories, coverage, and the other versions
	$(SETUP)
	$(RUN) python -m pytest $(ON_TWO_CORES) -m 'not cluster or smoke' $(ARGS)
	$(RUN) python -m pytest $(ON_TWO_CORES) --hypothesis-profile=thorough tests/history/test_truth.py tests/history/test_merging.py tests/history/messy
	@$(MAKE) coverage
	@.ci/test-matrix --small

# Python 3.11's tracer takes 2.6 times the CPU of the code that it watches, so the unit tests alone.
coverage: ## Measure how much of the package the unit tests cover; fails if that has become less
	$(SETUP)
	$(RUN) python -m pytest $(ON_TWO_CORES) -m 'not spark and not browser and not cluster' --cov $(ARGS) tests/unit

test-cluster: ## Run the tests on Hadoops of this machine's own, and on the API of a Kubernetes; ARGS='-k quota' for some
	$(SETUP)
	@.ci/setup-kerberos
	$(RUN) python -m pytest $(ON_TWO_CORES) -m cluster tests/cluster $(ARGS)

# One by one: they have one Kubernetes in common.
test-kubernetes: ## Run jobs on a real Kubernetes of this machine's own, built by Go 1.26 once (10 to 40 minutes)
	$(SETUP)
	$(RUN) python -m pytest -n 0 -m kubernetes tests/kubernetes $(ARGS)

truth: ## Compare what events report with what is true, for TPC-H on parquet, Delta and Iceberg; ARGS=delta for one, SPARK=3.5 for another Spark
	$(SETUP)
	$(RUN) python -m tests.truth $(if $(SPARK),--spark-submit "$$(.ci/spark-venv $(SPARK))/bin/spark-submit") $(ARGS)

faults: ## Try all that may go wrong around lineage, and write docs/reliability.md; ARGS='-k jar' for some of it
	$(SETUP)
	$(RUN) python -m tests.faults $(ARGS)

bench: ## Measure what lineage costs, and write docs/performance.md; ARGS='merging page' for some of it
	$(SETUP)
	$(RUN) python -m benchmarks $(ARGS)

pictures: ## Make the pictures of docs/ anew, from a run of the demo; ARGS=lineage_page.png for some of them
	$(SETUP)
	$(RUN) python -m tests.pictures $(ARGS)

record-events: ## Record the events in tests/golden anew, from real runs of all supported PySparks
	$(SETUP)
	@.ci/record-events $(CASES)

test-matrix: ## Run the tests on all supported PySparks, Airflows and Pythons; ROWS='spark-3.5' for some
	$(SETUP)
	@.ci/test-matrix $(ROWS)

LINT_TESTS := $(foreach name,modules architecture words pins,tests/workshop/test_$(name).py)

lint: ## Check style, types, the layering of imports, the sizes of modules, and the pages about them
	$(SETUP) --without-spark
	$(RUN) ruff check .
	$(RUN) ruff format --check .
	$(RUN) mypy
	$(RUN) lint-imports
	$(RUN) python -m pytest -q -n 0 $(LINT_TESTS)

page: ## Build the tab and the page "Spark lineage" anew; needs Node 20 and npm
	@cd airflow_provider_sparklineage/plugins/ui && npm ci && npm run build

clean: ## Remove everything that these commands made
	rm -rf build .venv .venvs *.egg-info .coverage* .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
