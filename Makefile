# Ferry's doors. `make` lists them.
.DEFAULT_GOAL := help
SWIFT ?= swift
RELEASE := .build/release

.PHONY: help
help: ## List what can be made
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: demo
demo: ## Three devices and a server on real data, start to end
	@Scripts/install-dependencies.sh build demo
	@$(SWIFT) build -c release --product ferry
	@$(SWIFT) build -c release --product ferryd
	@Scripts/demo.sh $(RELEASE)

.PHONY: test
test: ## All tests, with a PostgreSQL of their own
	@Scripts/install-dependencies.sh build test
	$(SWIFT) build --build-tests
	$(SWIFT) test --skip-build

.PHONY: build
build: ## The programs ferry, ferryd and ferry-bench, optimised
	@Scripts/install-dependencies.sh build
	$(SWIFT) build -c release

.PHONY: serve
serve: build ## A server on http://127.0.0.1:8080 with the embedded store
	@$(RELEASE)/ferryd serve

.PHONY: bench
bench: ## Speed against the raw limits measured in the same run
	@Scripts/install-dependencies.sh build test
	@for program in ferry ferryd ferry-bench; do $(SWIFT) build -c release --product $$program || exit 1; done
	@$(RELEASE)/ferry-bench run

.PHONY: chaos
chaos: ## Real processes paused, killed and cut off, ROUNDS times each: the long matrix
	@Scripts/install-dependencies.sh build test
	@for program in ferry ferryd ferry-chaos; do $(SWIFT) build -c release --product $$program || exit 1; done
	@$(RELEASE)/ferry-chaos matrix --rounds $(or $(ROUNDS),10) --duration $(or $(DURATION),30s)

.PHONY: format
format: ## Format all sources
	git ls-files -co --exclude-standard '*.swift' | xargs $(SWIFT) format --in-place

.PHONY: lint
lint: ## Check the format of all sources
	git ls-files -co --exclude-standard '*.swift' | xargs $(SWIFT) format lint --strict
