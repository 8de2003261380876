# Everything runs from here; "make help" lists the targets.

BIN := $(CURDIR)/bin
KUBERNETES := v1.36.3
KUBERNETES_MINOR := $(word 2,$(subst ., ,$(KUBERNETES)))
CONTROLPLANE_LDFLAGS := -s -w \
	-X k8s.io/component-base/version.gitVersion=$(KUBERNETES) \
	-X k8s.io/component-base/version.gitMajor=1 \
	-X k8s.io/component-base/version.gitMinor=$(KUBERNETES_MINOR)
TOOL := go tool -modfile=tools/go.mod
OUT ?= $(BIN)/bench.json
PKG ?= ./internal/... ./pkg/... ./cmd/... ./examples/... ./charts/... ./docs/...
# Tests that miss a program fail where it was built for them, and are left out
# of a plain "go test".
NEEDS_LAB := FLOTILLA_NEEDS_LAB=1
export GOTOOLCHAIN := local

.DEFAULT_GOAL := help

.PHONY: help
help: ## List the targets
	@grep -hE '^[a-z0-9-]+:.*## ' $(MAKEFILE_LIST) | awk -F':.*## ' '{printf "  %-14s %s\n", $$1, $$2}'

.PHONY: build
build: ## Build flotilla, flotilla-hub and flotilla-agent into bin/
	@mkdir -p $(BIN)
	go build -o $(BIN)/ ./cmd/...

.PHONY: controlplane
controlplane: $(BIN)/controlplane ## Build the lab's Kubernetes into bin/ (about ten minutes the first time)

$(BIN)/controlplane: $(wildcard e2e/controlplane/*.go) e2e/controlplane/go.mod
	@mkdir -p $(BIN)
	@echo "building Kubernetes $(KUBERNETES) for the lab; about ten minutes the first time, seconds afterwards"
	cd e2e/controlplane && go build -trimpath -ldflags '$(CONTROLPLANE_LDFLAGS)' -o $@ .
	ln -sf controlplane $(BIN)/kubectl

.PHONY: demo
demo: build controlplane ## Show the main job on real control planes (KEEP=1 leaves them running)
	$(BIN)/flotilla demo $(if $(KEEP),--keep)

.PHONY: test
test: build controlplane ## Run all tests
	go vet $(PKG) ./e2e
	$(NEEDS_LAB) go test -timeout 40m ./e2e $(PKG)

.PHONY: test-unit
test-unit: ## Run the tests that need no cluster
	go test -short $(PKG)

.PHONY: e2e
e2e: build controlplane ## Run the end-to-end tests (RUN=pattern)
	go test -v -timeout 40m ./e2e $(if $(RUN),-run '$(RUN)')

BENCH_FLAGS = $(if $(ROW),--row=$(ROW)) $(if $(N),--n=$(N)) $(if $(REPEATS),--repeats=$(REPEATS)) \
	$(if $(CHARTS),--charts=$(CHARTS)) $(if $(REQUESTS),--requests) $(if $(PROFILES),--profiles=$(PROFILES))

.PHONY: bench
bench: build controlplane ## Measure what a fleet costs (ROW=names N=clusters REPEATS=n CHARTS=directory OUT=file REQUESTS=1 PROFILES=directory)
	@mkdir -p $(dir $(OUT))
	go build -o $(BIN)/flotilla-bench ./internal/bench/flotilla-bench
	$(BIN)/flotilla-bench --bin=$(BIN) --out=$(OUT) $(BENCH_FLAGS)

# The base is built and measured in a checkout of its own, with its own program.
.PHONY: bench-compare
bench-compare: build controlplane ## Measure another commit and this one (BASE=commit, and what bench takes)
	@test -n "$(BASE)" || { echo "name the commit to compare with: make bench-compare BASE=main~5 ROW=deploy N=100"; exit 1; }
	go build -o $(BIN)/flotilla-bench ./internal/bench/flotilla-bench
	git worktree remove --force $(BIN)/base 2>/dev/null || true
	git worktree add --force --detach $(BIN)/base $(BASE)
	trap 'git worktree remove --force $(BIN)/base' EXIT; \
	mkdir -p $(BIN)/base/bin && ln -sf $(BIN)/controlplane $(BIN)/base/bin/controlplane && \
	(cd $(BIN)/base && go build -o bin/ ./cmd/... ./internal/bench/flotilla-bench && \
	bin/flotilla-bench --bin=bin --commit=$(BASE) --out=$(BIN)/bench-base.json $(BENCH_FLAGS)) && \
	$(BIN)/flotilla-bench --bin=$(BIN) --out=$(OUT) $(BENCH_FLAGS) && \
	$(BIN)/flotilla-bench compare $(BIN)/bench-base.json $(OUT)

.PHONY: tools
tools: ## Build the real helm and kustomize into bin/tools, for equality and the test of adoption (about three minutes)
	@mkdir -p $(BIN)/tools
	cd tools/equality && go build -o $(BIN)/tools/ helm.sh/helm/v3/cmd/helm sigs.k8s.io/kustomize/kustomize/v5

.PHONY: equality
equality: tools ## Compare renders with the real helm and kustomize
	go test -count=1 ./internal/render -run TestEqual -v -tools=$(BIN)/tools

.PHONY: golden
golden: ## Rewrite golden files
	go test ./internal/cli/... -update

.PHONY: soak
soak: build controlplane ## Run fleets through scripts and faults (SEEDS=500 REAL=20; SEED=7 replays one and tells its story)
	go test -count=1 -timeout 4h ./internal/soak -run 'TestSeeds|TestRealSeeds' -v \
		$(if $(SEED),-seed=$(SEED) -real=$(if $(REAL),1,0),-seeds=$(or $(SEEDS),500) -real=$(or $(REAL),20))

.PHONY: mutants
mutants: ## Put old bugs back, one at a time, to see that the soak test catches them (SEEDS=100)
	go test -count=1 -timeout 1h ./internal/soak -run TestMutants -v -mutants=$(or $(SEEDS),100)

FUZZTIME ?= 1m

.PHONY: fuzz
fuzz: ## Look for input that breaks what reads it, each target in turn (FUZZTIME=1m RUN='FuzzS*' PARALLEL=2)
	@grep -rHoE --include='*_test.go' '^func Fuzz[A-Za-z0-9_]+' cmd internal pkg charts examples | sort | \
	while IFS=: read -r file name; do \
		name=$${name#func }; case $$name in $(or $(RUN),*)) ;; *) continue;; esac; \
		echo "$$name in $${file%/*}"; \
		go test -run '^$$' -fuzz "^$$name\$$" -fuzztime $(FUZZTIME) $(if $(PARALLEL),-parallel $(PARALLEL)) ./$${file%/*} </dev/null || exit 1; \
	done

.PHONY: deflake
deflake: build controlplane ## Loop a test until it fails: make deflake PKG=./internal/lab RUN=TestX
	@n=0; while go test -count=1 $(PKG) $(if $(RUN),-run '$(RUN)'); do n=$$((n+1)); echo "passed $$n times"; done

.PHONY: lint
lint: ## Run the linters (builds them first, about three minutes)
	$(TOOL) golangci-lint run ./...

.PHONY: generate
generate: ## Write generated files: deepcopy, CRDs, references
	go generate ./...

.PHONY: verify
verify: generate ## Check formatting, vet, tidiness and that generated files are up to date
	@test -z "$$(gofmt -l cmd internal pkg e2e examples charts docs)" || { gofmt -l cmd internal pkg e2e examples charts docs; echo "run gofmt -w"; exit 1; }
	go vet ./...
	go mod tidy -diff
	@git diff --exit-code --stat || { echo "generated files are not up to date: commit the result of make generate"; exit 1; }
