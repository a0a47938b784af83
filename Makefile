# Drover's shop. `make help` lists the targets.
GO        ?= go
INIT      := internal/node/supervisor/initbin/drover-init
INIT_SRC  := $(shell find cmd/drover-init internal/node/supervisor -name '*.go' -not -name '*_test.go' 2>/dev/null) go.mod
VERSION   ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)

.PHONY: help build init run test check lint fmt race sim bench fuzz clean deps

help: ## list the targets
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*##/\t/' | expand -t 12

init: $(INIT) ## build the supervisor that is embedded into drover

$(INIT): $(INIT_SRC)
	CGO_ENABLED=0 $(GO) build -trimpath -ldflags '-s -w' -o $@ ./cmd/drover-init
	@touch $@

build: init ## build bin/drover, one file that needs no other
	CGO_ENABLED=0 $(GO) build -trimpath -ldflags '-s -w -X drover/internal/version.Version=$(VERSION)' -o bin/drover ./cmd/drover

clean: ## remove what was built
	rm -rf bin $(INIT)
