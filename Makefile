# Run `make` for the list of targets.

SHELL := /bin/bash
.DEFAULT_GOAL := help

# How long `make fuzz` runs each target.
FUZZTIME ?= 1m
# Arguments for `make run`, `make demo`, `make drill` and `make bench`, for example ARGS=--help.
ARGS ?=

.PHONY: help
help: ## Show this list.
	@echo 'Usage: make <target>'
	@awk 'BEGIN {FS = ":.*## "} /^[a-z0-9-]+:.*## / {printf "  %-11s %s\n", $$1, $$2}' Makefile

# The programs are built and run rather than started by `go run`, which would
# die of a SIGTERM without passing it on.
.PHONY: run
run: ## Start Postgres, a local chain and the relay, show withdrawals and swaps and keep serving until Ctrl-C.
	go build -buildvcs=false -o bin/dev ./hack/dev
	bin/dev run $(ARGS)

.PHONY: demo
demo: ## Show a deposit, withdrawals, refusals, a transfer and swaps once, on processes of its own; exits 0 or 1.
	go build -buildvcs=false -o bin/dev ./hack/dev
	bin/dev demo $(ARGS)

.PHONY: tour
tour: ## Make the tour with a relay and a local chain that run already, such as a fleet whose ports are forwarded.
	go build -buildvcs=false -o bin/dev ./hack/dev
	bin/dev tour $(ARGS)

# The seed of `make drill`, which chooses its schedule, and how long it loads.
SEED ?= 1
DURATION ?= 3m

.PHONY: drill
drill: ## Break relays, database and endpoints under load, then account for everything; SEED=n, DURATION=3m.
	go build -buildvcs=false -o bin/drill/drill ./hack/drill
	bin/drill/drill -seed $(SEED) -duration $(DURATION) $(ARGS)

.PHONY: build
build: ## Build relay, operator and the kubectl plugin into bin/.
	go build -trimpath -o bin/relay ./relay/cmd/relay
	go build -trimpath -o bin/operator ./controllers/cmd/operator
	go build -trimpath -o bin/kubectl-relaypool ./controllers/cmd/kubectl-relaypool

# Where images are named for, and what for; the first platform is that of the
# archives with the plain names. A version of Go that is newer than go.mod's could
# build the programs, or pack the layers, in other bytes.
REGISTRY ?= ghcr.io/relaypool
PLATFORMS ?= linux/amd64
IMAGES_GO := GOFLAGS= GOWORK=off GOTOOLCHAIN=go$(word 2,$(shell grep '^go ' hack/images/go.mod))

.PHONY: images
images: bin/images/tool ## Build the images of operator and relay into bin/images/, with SBOMs and digests; needs no Docker.
	$(IMAGES_GO) bin/images/tool build -root . -out bin/images -registry $(REGISTRY) -platform $(PLATFORMS) $(ARGS)

.PHONY: e2e-images
e2e-images: bin/images/tool ## Build the images of the end-to-end suite into bin/images/e2e/: local chain, gate, Postgres, and Vault, Traefik, KEDA and Prometheus, which take twenty minutes to compile once.
	$(IMAGES_GO) bin/images/tool e2e -root . -out bin/images/e2e $(ARGS)

.PHONY: bin/images/tool
bin/images/tool:
	cd hack/images && $(IMAGES_GO) go build -buildvcs=false -o ../../bin/images/tool .

# The archives are the same for each commit, as the images are.
PLUGIN_PLATFORMS ?= linux-amd64 linux-arm64 darwin-amd64 darwin-arm64

.PHONY: plugin
plugin: ## Build the kubectl plugin's archives and its manifest for krew into bin/krew/.
	rm -rf bin/krew && mkdir -p bin/krew/files && cp LICENSE bin/krew/files/ && cp config/krew/relaypool.yaml bin/krew/
	set -e -o pipefail; epoch=$${SOURCE_DATE_EPOCH:-$$(git log -1 --format=%ct)}; \
	  for platform in $(PLUGIN_PLATFORMS); do \
	    CGO_ENABLED=0 GOOS=$${platform%-*} GOARCH=$${platform#*-} $(IMAGES_GO) go build -trimpath -o bin/krew/files/kubectl-relaypool ./controllers/cmd/kubectl-relaypool; \
	    archive=bin/krew/kubectl-relaypool-$$platform.tar.gz; \
	    tar -C bin/krew/files --sort=name --mtime=@$$epoch --owner=0 --group=0 --numeric-owner --mode=go=rX,u+rw -cf - LICENSE kubectl-relaypool | gzip -n9 >$$archive; \
	    sed -i "s/{{sha256 $$platform}}/$$(sha256sum <$$archive | cut -d' ' -f1)/" bin/krew/relaypool.yaml; \
	  done
	sed -i "s/{{version}}/$$(sed -n 's/^const Version = "\(.*\)"/\1/p' relay/contract/contract.go)/" bin/krew/relaypool.yaml
	rm -r bin/krew/files

.PHONY: test
test: ## Run every test, the main module's under the race detector, on one private Postgres and real API servers.
	go build -buildvcs=false -o bin/with-postgres ./hack/postgres/cmd/with-postgres
	bin/with-postgres hack/test

.PHONY: fresh
fresh: ## Lint, demo, test and run HEAD in a clone, with a home and caches that are empty: an hour.
	hack/fresh

.PHONY: lint
lint: ## Check formatting, go.mod files and golangci-lint in every module, and known vulnerabilities.
	hack/lint

.PHONY: chart
chart: ## Write what is generated of the Helm chart anew, and package it into bin/charts, the same for each commit.
	cd hack/chart && go generate ./...
	cd hack/chart && SOURCE_DATE_EPOCH=$${SOURCE_DATE_EPOCH:-$$(git log -1 --format=%ct)} \
	  $(IMAGES_GO) go run -buildvcs=false ./cmd/package -root ../.. -out ../../bin/charts

.PHONY: generate
generate: ## Write the generated code anew.
	go generate ./...
	cd hack/chart && go generate ./...

.PHONY: verify
verify: ## Check that generated code is current, then lint and test.
	hack/verify-generated
	$(MAKE) lint
	$(MAKE) test

.PHONY: fuzz
fuzz: ## Run each fuzz target of every package for FUZZTIME (1m).
	hack/fuzz $(FUZZTIME)

.PHONY: bench
bench: ## Measure cryptography, relay, the reading of blocks, ways of sending and operator, some 45 minutes; ARGS='-only relay' for a part, ARGS=-h for more.
	go build -buildvcs=false -o bin/bench/throughput ./hack/throughput
	bin/bench/throughput $(ARGS)

# KUBECONFIG leads to a cluster of which everything of relaypool is deleted, and
# LOAD_IMAGE makes an image archive known to its nodes: kind load image-archive.
.PHONY: e2e
e2e: ## Test on a real cluster, with KUBECONFIG and LOAD_IMAGE; ARGS=-h for more (docs/engineering/e2e.md).
	@mkdir -p bin/e2e
	@echo 'Helm takes some minutes to build when the cache of Go lacks it'
	set -o pipefail; helm=$$(go tool -modfile=hack/tools/helm/go.mod -n helm) && \
	  go test -tags e2e -run '^TestE2E$$' -v -count 1 -timeout 0 ./hack/e2e -args -helm "$$helm" $(ARGS) | tee -i bin/e2e/report.txt

.PHONY: pictures
pictures: ## Draw the dashboards in docs/ anew, from a fleet that is run for four minutes.
	cd hack/monitoring && go test -count=1 -timeout 30m -run '^TestARealFleetIsOnTheDashboards$$' -v . -pictures -duration 4m -rate 5 $(ARGS)

.PHONY: clean
clean: ## Delete what build, run and demo left in this folder.
	rm -rf bin .run
