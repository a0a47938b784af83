# Drover's shop. `make help` lists the targets.
GO         ?= go
INIT       := internal/node/supervisor/initbin/drover-init.gz
INIT_SRC   := $(shell find cmd/drover-init internal/node/supervisor internal/clock internal/forked internal/id internal/stack internal/sysmon internal/wake '(' -name '*.go' -o -name '*.s' ')' -not -name '*_test.go' 2>/dev/null) $(wildcard *.go) go.mod
SRC        := $(shell find . '(' -name '*.go' -o -name '*.s' ')' -not -name '*_test.go' 2>/dev/null) go.mod
VERSION    ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
GOFUMPT    := mvdan.cc/gofumpt@v0.9.2
GOLANGCI   := github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.6.2
# Lint vets.
SIMULATIONS := ./internal/sim/... ./internal/fleet/simulator ./internal/bench/fleet
TESTFLAGS  ?= -race -shuffle=on -timeout 30m -vet=off -gcflags=all=-dwarf=false
# To compile takes a sixth less time with a larger heap, and a ninth less without what only debuggers read. What is compiled runs as always.
TEST       := GOGC=400 $(GO) test -exec 'env -u GOGC'

.PHONY: help build init run test seeds short lint fmt sim traces bench fuzz clean deps module docs

help: ## list the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*##/\t/' | expand -t 12

run: build ## build, start a dev agent, run a program in a warm runner, stay up
	./bin/drover agent -dev -demo

test: deps init seeds ## all tests, as CI runs them
	$(TEST) $(TESTFLAGS) ./...

# A world in virtual time is one goroutine, which the race detector makes ten times as slow: it sees a few seeds, and this all of them.
# Built as drover is, so that what is compiled serves the tests' drover, too.
seeds: init ## simulations without the race detector, as many as CI runs
	CGO_ENABLED=0 $(TEST) -shuffle=on -timeout 30m -vet=off $(SIMULATIONS)

short: init ## tests of one area: make short PKG=./internal/exec/...
	$(TEST) $(TESTFLAGS) $(PKG)

deps: ## install what the tests need (Debian, as root), else say what is missing
	@./scripts/deps

build: bin/drover ## build bin/drover, one file that needs no other

bin/drover: $(INIT) $(SRC)
	CGO_ENABLED=0 $(GO) build -trimpath -ldflags '-s -w -X github.com/drover-project/drover/internal/version.Version=$(VERSION)' -o $@ ./cmd/drover

init: $(INIT) ## build the supervisor that is embedded into drover

$(INIT): $(INIT_SRC)
	CGO_ENABLED=0 $(GO) build -trimpath -ldflags '-s -w' -o $(@:.gz=) ./cmd/drover-init
	@gzip -9nf $(@:.gz=)
	@touch $@

docs: init ## write docs/reference from the code
	$(GO) run ./internal/docgen

fmt: ## format
	$(GO) run $(GOFUMPT) -w .

module: ## rename the module everywhere: make module PATH=example.org/drover
	@PATH=$$(/usr/bin/tr '\0' '\n' < /proc/$$PPID/environ | /usr/bin/sed -n 's/^PATH=//p') ./scripts/module "$(PATH)"

# Without cgo, as drover is built, so that what is compiled for the linter serves the tests' drover, too.
lint: export CGO_ENABLED = 0
lint: export GOGC = 400
lint: init ## gofumpt, golangci-lint with all of vet
	@out=$$($(GO) run $(GOFUMPT) -l .); test -z "$$out" || { echo "not formatted (make fmt):"; echo "$$out"; exit 1; }
	$(GO) run $(GOLANGCI) run ./...

sim: ## simulation over many seeds: make sim SEEDS=10000
	$(GO) test -count=1 -timeout 6h -run "TestSimulation|TestSeveralServers|TestRollouts" ./internal/sim ./internal/sim/rollouts -sim.seeds $${SEEDS:-1000}

traces: init ## replay Nomad's transcripts, and walks with its commands, against the real binary: make traces RUN='^canary-' DETAILS=1 STRICT=1 SIDE=24
	$(GO) test -count=1 -timeout 60m -v -run 'TestTraces|TestWalks' ./internal/e2e/traces -traces='$(or $(RUN),.)' -details=$(or $(DETAILS),0) -strict=$(or $(STRICT),0) -side=$(or $(SIDE),24)

bench: build ## measure the figures that count: one JSON object a line, then a table (BENCH=-quick)
	@./scripts/bench $(BENCH)

fuzz: init ## fuzz the parsers, 20 s each
	$(GO) test -fuzz FuzzParse -fuzztime 20s ./jobspec
	$(GO) test -fuzz Fuzz -fuzztime 20s ./internal/control/command

clean: ## remove what was built
	rm -rf bin $(INIT)
