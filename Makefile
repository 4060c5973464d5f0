# Ferry's doors. `make` lists them.
.DEFAULT_GOAL := help
SWIFT ?= swift
RELEASE := .build/release
# Beside the programs of no configuration: it is C, and does not depend on them.
PATCH_HOST := .build/ferry-patch
# Of `make sim`: worlds of each kind, and worlds at once.
SEEDS ?= 200
JOBS ?= 2

# Tests are started a few at a time. The test library keeps no backtraces of errors: it would search
# all of them under one lock at the end of each test, which held tests with many errors to one core.
export SWT_EXPERIMENTAL_MAXIMUM_PARALLELIZATION_WIDTH ?= 4
export SWT_SWIFT_ERROR_BACKTRACING_ENABLED ?= 0
# Without debug information the tests are built in four fifths of the time; `make test TEST_BUILD=`
# keeps it.
TEST_BUILD ?= -debug-info-format none
# All but the tests themselves are optimised in debug builds: worlds and servers are several times as
# fast. `export FERRY_OPTIMISED=1` lets `swift build` use the same build.
export FERRY_OPTIMISED ?= 1
SWIFT_BUILD := $(SWIFT) build

# Tests that never wait for a clock or another process, and those that keep many processes busy. The
# parts run one after another: each would slow the others down.
PURE := ProtocolTests|SyncClientTests
SERVER := SyncServerTests|PairTests\.Daemon
MISSIONS := PairTests\.Mission
# Simulated worlds with known mistakes: `make planted` proves that they are found.
PLANTED := PlantedFaultTests

.PHONY: help
help: ## List what can be made
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

# `make demo CONFIGURATION=debug` shows the programs that the tests have built.
ifdef CONFIGURATION
DEMO := .build/$(CONFIGURATION)
DEMO_BUILD = $(BUILD)
else
# Without optimisation the demo's programs are built in about a third of the time.
DEMO := .build/quick/demo/debug
DEMO_BUILD = FERRY_OPTIMISED=0 $(SWIFT_BUILD) --scratch-path .build/quick/demo -debug-info-format none
endif
CONFIGURATION ?= release
BUILD := $(SWIFT_BUILD) -c $(CONFIGURATION) $(if $(filter debug,$(CONFIGURATION)),$(TEST_BUILD))

.PHONY: demo
demo: ## Three devices and a server on real data, start to end
	@Scripts/install-dependencies.sh build demo
	@echo "Building ferry, the device's command (1 of 2; some minutes the first time)"
	@$(DEMO_BUILD) --product ferry
	@echo "Building ferryd, the server (2 of 2)"
	@$(DEMO_BUILD) --product ferryd
	@Scripts/demo.sh $(DEMO)

.PHONY: test
test: ## All tests, with a PostgreSQL of their own
	@Scripts/install-dependencies.sh build test patches
	@Scripts/build-patch-host.sh $(PATCH_HOST)
	@$(PATCH_HOST) probe >/dev/null || { rm -f $(PATCH_HOST); \
	  echo "ferry-patch cannot confine itself on this system: tests that run it are skipped"; }
	$(SWIFT_BUILD) --build-tests $(TEST_BUILD)
	@Scripts/run-tests.sh $(SWIFT) test --skip-build --filter '$(PURE)'
	@Scripts/run-tests.sh $(SWIFT) test --skip-build --skip '$(PURE)|$(SERVER)|PairTests|SimulationTests'
	@Scripts/run-tests.sh $(SWIFT) test --skip-build --filter '$(SERVER)'
	@Scripts/run-tests.sh $(SWIFT) test --skip-build --filter '$(MISSIONS)'
	@Scripts/run-tests.sh $(SWIFT) test --skip-build --filter PairTests --skip '$(MISSIONS)|$(SERVER)'
	@Scripts/run-tests.sh $(SWIFT) test --skip-build --filter SimulationTests --skip '$(PLANTED)'

# Not optimised, and in a folder of its own: a changed file compiles alone.
.PHONY: quick
quick: ## The tests of one AREA: sync, server, missions, …; ONLY=Outbox for some of them
	@test -n "$(AREA)" || { echo "name an area: make quick AREA=sync"; exit 64; }
	@Scripts/install-dependencies.sh build test
	FERRY_OPTIMISED=0 FERRY_AREA=$(AREA) $(SWIFT_BUILD) --build-tests --scratch-path .build/quick/$(AREA) -debug-info-format none
	@FERRY_OPTIMISED=0 FERRY_AREA=$(AREA) Scripts/run-tests.sh $(SWIFT) test --skip-build --scratch-path .build/quick/$(AREA) \
	  $(if $(ONLY),--filter '$(ONLY)')

.PHONY: sim
sim: planted worlds ## Planted mistakes that have to be found, and SEEDS worlds of each kind

# FUZZ=--keep keeps an input of each new kind; FUZZ='--only packet' reads one kind of message.
.PHONY: fuzz
fuzz: ## CASES inputs by chance (ten million) for everything that reads bytes from outside
	@Scripts/install-dependencies.sh build
	@$(BUILD) --product ferry-sim
	@Scripts/run-tests.sh .build/$(CONFIGURATION)/ferry-sim fuzz --cases $(or $(CASES),10000000) --seed $(or $(SEED),1) \
	  --jobs $(JOBS) $(FUZZ)

.PHONY: planted
planted: ## Simulated worlds with known mistakes, which have to be found
	@Scripts/install-dependencies.sh build test
	$(SWIFT_BUILD) --build-tests $(TEST_BUILD)
	@Scripts/run-tests.sh $(SWIFT) test --skip-build --filter '$(PLANTED)'

# The same worlds each time, then as many that no commit before has seen; outside of git, the day's.
.PHONY: worlds
worlds: ## SEEDS simulated worlds that stay the same, as many new ones, and some with mirrors, lies or attacks
	@Scripts/install-dependencies.sh build test
	@$(BUILD) --product ferry-sim
	@new=$$((0x$$(git rev-parse --verify --quiet --short=8 HEAD 2>/dev/null || date +%Y%m%d))); \
	for first in 1 $$new; do \
	  echo "Worlds from seed $$first on"; \
	  .build/$(CONFIGURATION)/ferry-sim swarm --first $$first --seeds $(SEEDS) --jobs $(JOBS) || exit 1; \
	done
	@for kind in "--mirrors 2 --seeds $$((($(SEEDS) + 3) / 4))" "--lies 8 --seeds $$((($(SEEDS) + 3) / 4))" \
	    "--strangers 2 --seeds $$((($(SEEDS) + 9) / 10))"; do \
	  echo "Worlds with $$kind"; \
	  .build/$(CONFIGURATION)/ferry-sim swarm $$kind --first 1 --jobs $(JOBS) || exit 1; \
	done

# ONLY=memory, or ONLY=memory.slow_readers, runs a part; ATTACK=--list lists the promises.
.PHONY: attack
attack: ## Attacks on real processes: one promise each, with figures; ONLY=NAME for a part
	@Scripts/install-dependencies.sh build test
	@for program in ferry ferryd; do $(BUILD) --product $$program || exit 1; done
	@/usr/bin/python3 -B Tests/Attack/run.py .build/$(CONFIGURATION) --json .build/attack.json \
	  --svg .build/attack.svg $(if $(ONLY),--only $(ONLY)) $(if $(SEED),--seed $(SEED)) $(ATTACK)

.PHONY: build
build: ## All programs, optimised
	@Scripts/install-dependencies.sh build
	$(SWIFT_BUILD) -c release

# The window is a package of its own: nothing else needs WebKitGTK.
.PHONY: window
window: ## ferry-window, for `ferry shell --window`, beside the programs of CONFIGURATION
	@Scripts/install-dependencies.sh build window
	$(SWIFT_BUILD) --package-path Client/Window --scratch-path .build/window -c release
	@mkdir -p .build/$(CONFIGURATION)
	@install -m 755 .build/window/release/ferry-window .build/$(CONFIGURATION)/ferry-window
	@echo "ferry-window is in .build/$(CONFIGURATION): .build/$(CONFIGURATION)/ferry shell DIR --window"

.PHONY: hybrid
hybrid: ## A board as a web app: a film, live changes, a conflict, and three versions, one of them broken
	@Scripts/install-dependencies.sh build hybrid
	@$(BUILD) --product ferry
	@$(BUILD) --product ferryd
	@Scripts/hybrid.sh .build/$(CONFIGURATION)

# Root's files must not end up in .build: `sudo make install` installs the programs of `make build`.
PREFIX ?= /usr/local
PROGRAMS ?= $(RELEASE)

.PHONY: install
install: ## ferry, ferryd, libferry_sqlite.so, and ferry-patch if built, below PREFIX (/usr/local); knows DESTDIR
ifndef SUDO_USER
	@Scripts/install-dependencies.sh build
	@for program in ferry ferryd ferry_sqlite; do $(SWIFT_BUILD) -c release --product $$program || exit 1; done
endif
	@PATCH_HOST='$(wildcard $(PATCH_HOST))' Scripts/install.sh install '$(PROGRAMS)' '$(PREFIX)' '$(DESTDIR)'

.PHONY: uninstall
uninstall: ## Remove them again
	@Scripts/install.sh uninstall '$(PROGRAMS)' '$(PREFIX)' '$(DESTDIR)'

.PHONY: docs
docs: ## The library's documentation in .build/docs; links that lead nowhere, and examples that do not compile or run, fail
	@Scripts/install-dependencies.sh build test
	$(SWIFT_BUILD) --build-tests $(TEST_BUILD)
	@Scripts/check-examples.py .build/debug
	@Scripts/run-console.py .build/debug
	@Scripts/build-docs.sh .build/debug/Modules .build/docs
	@echo "The documentation is in .build/docs. To read it: python3 -m http.server -d .build/docs 8000,"
	@echo "then open http://127.0.0.1:8000/documentation/ferry"

.PHONY: portable
portable: ## The client without libcurl and zstd: URLSession and gzip, as on Apple's systems
	@Scripts/install-dependencies.sh build
	FERRY_OPTIMISED=0 $(SWIFT_BUILD) --disable-default-traits --scratch-path .build/portable --product ferry $(TEST_BUILD)
	@.build/portable/debug/ferry --version

.PHONY: outside
outside: ## A package of its own that replaces parts of Ferry, against a server; the build of such packages
	@Scripts/install-dependencies.sh build
	$(SWIFT_BUILD) --build-tests $(TEST_BUILD)
	@Scripts/check-dependent.sh
	@Scripts/run-outside.sh .build/debug

.PHONY: patches
patches: ## ferry-patch, which runs signed patches of an app's behaviour in JavaScriptCore
	@Scripts/install-dependencies.sh patches
	@Scripts/build-patch-host.sh $(PATCH_HOST)
	@$(PATCH_HOST) probe >/dev/null && echo "$(PATCH_HOST) is built, and confines itself on this system"

.PHONY: serve
serve: ## A server on http://127.0.0.1:8080 with the embedded store
	@Scripts/install-dependencies.sh build
	@$(SWIFT_BUILD) -c release --product ferryd
	@$(RELEASE)/ferryd serve

.PHONY: bench
bench: ## Speed against the raw limits measured in the same run
	@Scripts/install-dependencies.sh build test
	@for program in ferry ferryd ferry-bench; do $(SWIFT_BUILD) -c release --product $$program || exit 1; done
	@$(RELEASE)/ferry-bench run

.PHONY: chaos
chaos: ## Real processes paused, killed and cut off, ROUNDS times each: the long matrix
	@Scripts/install-dependencies.sh build test
	@for program in ferry ferryd ferry-chaos; do $(SWIFT_BUILD) -c release --product $$program || exit 1; done
	@$(RELEASE)/ferry-chaos matrix --rounds $(or $(ROUNDS),10) --duration $(or $(DURATION),30s)

.PHONY: format
format: ## Format all sources
	git ls-files -co --exclude-standard '*.swift' | xargs $(SWIFT) format --in-place

# Documents and doc comments whose prose `make lint` checks.
PROSE := README.md ARCHITECTURE.md DECISIONS.md SIMULATION.md CONTRIBUTING.md Documentation Protocol Client Examples Server Sources Tests

.PHONY: lint
lint: ## Check the format of all sources, the prose of the documents, quoting, and the manifest
	@Scripts/install-dependencies.sh lint
	python3 -B -m unittest discover -s Scripts
	Scripts/check-prose.py $(PROSE)
	Scripts/check-waits.py Tests Sources/Proving/Laboratory
	Scripts/check-names.py Client Server Sources Protocol
	Scripts/check-errors.py Client Server Sources Protocol
	Scripts/check-machines.py 27.1 Client/Sync
	Scripts/check-text.py Client Server Sources Protocol Examples Scripts
	$(SWIFT) package dump-package | Scripts/check-manifest.py
	git ls-files -co --exclude-standard '*.swift' | xargs $(SWIFT) format lint --strict
