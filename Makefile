# Copyright The OCI Cloud Controller Manager Authors
# SPDX-License-Identifier: Apache-2.0

SHELL       := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
ARGS ?=

# A release is a tag; anything else says which commit it is. The form is one that component-base accepts.
VERSION    ?= $(shell git describe --tags --match 'v[0-9]*' --dirty 2>/dev/null || echo v1.37.0-dev.g$$(git rev-parse --short HEAD 2>/dev/null || echo unknown)$$(test -z "$$(git status --porcelain 2>/dev/null)" || echo -dirty))
COMMIT     ?= $(shell git rev-parse HEAD 2>/dev/null || echo unknown)
TREE_STATE ?= $(shell test -z "$$(git status --porcelain 2>/dev/null)" && echo clean || echo dirty)
# The date of the commit, not of the build: the same commit gives the same binary.
BUILD_DATE ?= $(shell TZ=UTC git log -1 --date=format-local:%Y-%m-%dT%H:%M:%SZ --format=%cd 2>/dev/null || echo 1970-01-01T00:00:00Z)

V       := k8s.io/component-base/version
LDFLAGS := -s -w -X $(V).gitVersion=$(VERSION) -X $(V).gitCommit=$(COMMIT) -X $(V).gitTreeState=$(TREE_STATE) -X $(V).buildDate=$(BUILD_DATE) \
  -X k8s.io/client-go/pkg/version.gitVersion=$(VERSION) -X k8s.io/client-go/pkg/version.gitCommit=$(COMMIT) # the User-Agent

# The flags that the control plane of the tests is built with (test/cluster), for every go command below: they are part of the
# key of the build cache, so that client-go and the rest are compiled once for control plane, binaries, tests and linters.
# The race detector needs its own.
export GOFLAGS     := -buildvcs=false -trimpath -gcflags=all=-dwarf=false
export CGO_ENABLED := 0

# Compilers, linters and test processes live for minutes at most: fewer collections, more memory (each stays below 4 GiB).
# What measures memory sets its own.
test lint build control-plane test-unit test-long: export GOGC := 400

GO_BUILD := go build -ldflags '$(LDFLAGS)'

BINARIES := oci-cloud-controller-manager oci-csi-controller-driver oci-csi-node-driver

TOOLS            := $(if $(XDG_CACHE_HOME),$(XDG_CACHE_HOME),$(HOME)/.cache)/oci-ccm-tools
GOLANGCI_VERSION := v2.15.0
GOLANGCI         := $(TOOLS)/golangci-lint-$(GOLANGCI_VERSION)
VULN_VERSION     := v1.9.0
VULNCHECK        := $(TOOLS)/govulncheck-$(VULN_VERSION)

say = @printf '\033[1m==> %s\033[0m\n' "$(1)"

##@ Use

.PHONY: demo
demo: build control-plane ## Run the main job on a simulated region: nodes, an LB and an NLB. ARGS=--once deletes them again and exits.
	$(call say,demo: a simulated OCI region + etcd + kube-apiserver + our cloud-controller-manager)
	@go run ./test/demo -bin bin $(ARGS)

.PHONY: build
build: ## Build the binaries into bin/.
	$(call say,building $(BINARIES) and ocisim $(VERSION))
	@$(GO_BUILD) -o bin/ $(addprefix ./cmd/,$(BINARIES)) ./test/ocisim/cmd/ocisim

.PHONY: image
image: ## Build the container image (needs a Docker engine or buildah's docker front end).
	docker build --build-arg VERSION=$(VERSION) --build-arg COMMIT=$(COMMIT) --build-arg BUILD_DATE=$(BUILD_DATE) -t cloud-provider-oci:$(VERSION) .

##@ Test

# Builds take all there is of a small machine, one after the other: what two of them need is then built once. System tests mostly
# wait, and run beside the unit tests.
.PHONY: test
test: ## Everything that must pass before a change lands: lint, unit, component and system tests.
	@$(MAKE) --no-print-directory lint
	@$(MAKE) --no-print-directory control-plane
	@$(MAKE) --no-print-directory -j2 test-unit test-beside

.PHONY: test-beside
test-beside: ## What runs beside the unit tests: test-system, test-typescript, test-web and test-long, one after the other.
	@$(MAKE) --no-print-directory -j1 test-system test-typescript test-web test-long

# The linters include vet.
.PHONY: test-unit
test-unit: control-plane ## Unit and component tests, with the race detector.
	$(call say,unit and component tests with the race detector (the first run compiles everything: several minutes))
	@CGO_ENABLED=1 go test -race -vet=off -short -timeout 20m $$(go list ./... | grep -v -e /test/e2e -e /test/traffic -e /test/node -e /test/repo -e /test/ocisim/webtest) $(ARGS)

# Hours of virtual time, and worlds of thousands of objects. A test that leaves itself out with -short is in this list
# (test/repo looks), and the other way round.
LONG := TestUpgrade|TestRollBack|TestRollBackInADeletion|TestOneBalancerUnderSlowReads|TestBadSecrets|TestUpgradeOpensAndClosesNothing|TestDeleteAfterLostCreateUnderSlowReads|TestAnnotationsReachTheCloud|TestForeignHandOnTheSameObject|TestOneBalancerOnly|TestOneHour|TestKilledAnywhere|TestKilledInARotation|TestKilledWithRules|TestDeletedAfterAnInterruptedChangeOfMode|TestReplacementKilledAnywhere|TestSharedListsEndAsTheyBegan|TestRestartWithManyServices|TestRestartWithManyServicesAndRules|TestNodeAddedToManyBalancers|TestRandomChanges|TestRandomChangesWithRules|TestHourOfWeather|TestManyNodesJoinAtOnce|TestManyNodesNotReady|TestPassReadsListsAndWritesNothing|TestFailedPageIsAnErrorForAll|TestPassCostsPages|TestMemoryPerNode|TestManyVolumesCostFewCalls|TestVolumesInBadWeather|TestKilledInAnyCall|TestManyClaims|TestThrottledClaims|TestKilledAfterAnyCommand|TestTheWrongDisk|TestNothingIsFormattedThatIsNotEmpty

.PHONY: test-long
test-long: ## Component tests of hours and crowds, without the race detector.
	$(call say,hours and crowds on virtual time)
	@go test -timeout 20m -run '^($(LONG))$$' ./pkg/blockvolume ./pkg/csi/block ./pkg/firewall ./pkg/loadbalancer ./pkg/cloudprovider ./pkg/inventory ./pkg/host ./test/ocisim/scenario $(ARGS)

.PHONY: test-web
test-web: ## The simulator's web page in headless Chromium, which is installed if that is possible (root and apt). Screenshots are in bin/test-web.
	$(call say,the web page of the simulator in headless Chromium)
	@hack/chromium.sh
	@rm -rf bin/test-web && mkdir -p bin/test-web
	@go test -count=1 -timeout 15m -artifacts -outputdir $(CURDIR)/bin/test-web ./test/ocisim/webtest/ $(ARGS)

.PHONY: test-typescript
test-typescript: build ## The published packages of the OCI TypeScript SDK against the simulated region. Needs Node.js 20 or newer and npm.
	$(call say,the OCI TypeScript SDK against ocisim)
	@test/ocisim/typescript/run.sh bin/ocisim

.PHONY: test-system
test-system: build control-plane ## System tests: real etcd and kube-apiserver, our binaries as processes, the simulated region over TLS.
	$(call say,system tests)
	@go run ./test/cluster/cmd/devcluster -build -sidecars >/dev/null
	@OCI_CCM_BIN=$(CURDIR)/bin go test -timeout 40m -count=1 -parallel 4 -v ./test/e2e/... ./test/nodedriver $(ARGS) 2>&1 | grep --line-buffered -v -e '^=== \(RUN\|PAUSE\|CONT\)' 

# Built before go test, whose own time limit and hidden output do not suit a build of minutes.
.PHONY: control-plane
control-plane:
	@go run ./test/cluster/cmd/devcluster -build >/dev/null

.PHONY: test-vm
test-vm: build ## Tests that need an iSCSI initiator and target, in guests of user-mode Linux (Debian packages, built once in a minute). ARGS=-test.run=TestVMISCSI picks tests.
	$(call say,tests in Linux guests)
	@VM_BIN=$(CURDIR)/bin/oci-csi-node-driver test/vm/test.sh './test/ocisim/bodies ./pkg/host' ./test/nodedriver -- $(ARGS)

# As root: the suite makes network namespaces, which nobody else sees and which end with it.
.PHONY: test-traffic
test-traffic: build control-plane ## Requests through balancers and real kube-proxies to pods, while nodes, ports, health checks and a certificate change. Needs root.
	$(call say,traffic: clients, simulated balancers that forward, kube-proxy on each node, pods)
	@hack/nftables.sh
	@go run ./test/cluster/cmd/devcluster -build -node >/dev/null
	@OCI_CCM_BIN=$(CURDIR)/bin go test -timeout 30m -count=1 -v ./test/traffic/ $(ARGS)

# As root, like test-traffic: nodes are namespaces, with control groups and loop devices.
.PHONY: test-node
test-node: build control-plane ## Pods with volumes on real kubelets; kubelets, drivers and whole nodes that end in the middle. Needs root.
	$(call say,pods with volumes on real kubelets)
	@hack/nodetools.sh
	@go run ./test/cluster/cmd/devcluster -build -node -runtime -sidecars >/dev/null
	@OCI_CCM_BIN=$(CURDIR)/bin go test -timeout 30m -count=1 -parallel 6 -v ./test/node/ $(ARGS)

.PHONY: test-crash
test-crash: build control-plane ## Kill the binaries after each single cloud call of each scenario, restart, and look for leaks and duplicates.
	$(call say,crash matrix)
	@go run ./test/cluster/cmd/devcluster -build -sidecars >/dev/null
	@OCI_CCM_BIN=$(CURDIR)/bin go run ./test/crash $(ARGS)

.PHONY: bench
bench: build control-plane ## Measure the budgets: the simulator's speed, calls, times and memory of the product. ARGS='-run S2,P5' picks rows.
	$(call say,bench (P13 takes a quarter of an hour))
	@OCI_CCM_BIN=$(CURDIR)/bin go run ./test/bench $(ARGS)

##@ Check

.PHONY: lint
lint: $(GOLANGCI) ## golangci-lint, govulncheck where its database can be reached, layers, licence headers, generated files.
	$(call say,golangci-lint $(GOLANGCI_VERSION))
	@$(GOLANGCI) run --timeout 15m ./...
	@hack/govulncheck.sh $(VULNCHECK) $(VULN_VERSION)
	$(call say,layers + licence headers + generated files)
	@go test -count=1 ./test/repo/

.PHONY: generate
generate: ## Rewrite the generated references.
	@go generate ./...

.PHONY: update-kubernetes
update-kubernetes: ## Move every Kubernetes library and the tests' control plane in lockstep: make update-kubernetes TO=1.37.3
	@test -n "$(TO)" || { echo "say which: make update-kubernetes TO=1.37.3" >&2; exit 2; }
	@hack/update-kubernetes.sh $(TO)

.PHONY: clean
clean: ## Remove bin/. What the tests cached outside the tree stays (see DEVELOPMENT.md).
	rm -rf bin

$(GOLANGCI):
	$(call say,building golangci-lint $(GOLANGCI_VERSION) once (about three minutes))
	@mkdir -p $(TOOLS)/tmp && GOBIN=$(TOOLS)/tmp go install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(GOLANGCI_VERSION) && mv $(TOOLS)/tmp/golangci-lint $@

.PHONY: help
help: ## This list.
	@awk 'BEGIN {FS = ":.*## "} /^##@/ {printf "\n%s\n", substr($$0, 5)} /^[a-z-]+:.*## / {printf "  %-18s %s\n", $$1, $$2}' $(MAKEFILE_LIST)
