# make test is everything that must hold. make fuzz and make bench take minutes more; make conformance and make realservers need npm.

GO        ?= go
FUZZTIME  ?= 30s
BENCHTIME ?= 1s

# Every module of this repository; the one in tools/ holds no code, only the
# versions of the tools below.
modules := $(sort $(patsubst %/go.mod,%,$(shell find . -name go.mod -not -path '*/node_modules/*')))
code    := $(filter-out ./tools,$(modules))
frameworks := ./example/adk ./example/anthropic ./example/eino

tool := $(GO) tool -modfile=$(CURDIR)/tools/go.mod

# in-each runs a command in each of some modules and stops at the first failure.
in-each = @for m in $(1); do echo "$$m: $(2)"; (cd "$$m" && $(2)) || exit 1; done

.PHONY: test needs format tidy vet staticcheck unit fuzz bench chaos soak crash conformance realservers

test: needs format tidy vet staticcheck unit

# Go modules bring everything else.
needs:
	@command -v $(GO) >/dev/null || { echo "missing: Go, in the version that go.mod names (https://go.dev/dl)"; exit 1; }
	@$(GO) env GOVERSION GOOS GOARCH
	@test "$$($(GO) env CGO_ENABLED)" = 1 || { echo "missing: a C compiler such as gcc, which the race detector needs; if there is one, CGO_ENABLED=1"; exit 1; }

format:
	@echo "gofmt -l ."; files=$$("$$($(GO) env GOROOT)/bin/gofmt" -l .); test -z "$$files" || { echo "not formatted: $$files"; exit 1; }

tidy:
	$(call in-each,$(modules),$(GO) mod tidy -diff)

vet:
	$(call in-each,$(code),$(GO) vet ./...)

staticcheck:
	$(call in-each,$(code),$(tool) staticcheck ./...)

# Tests wait more than they compute, so more of them run at once than there are
# cores. The seeds of the fuzz targets run with them, and the examples are built. What
# the frameworks' examples depend on takes minutes to compile for the race detector.
unit:
	$(call in-each,$(filter-out $(frameworks),$(code)),$(GO) build -o /dev/null ./... && $(GO) test -race -shuffle=on -parallel 8 ./...)
	$(call in-each,$(frameworks),$(GO) build -o /dev/null ./... && $(GO) test ./...)

# Each fuzz target in turn, for FUZZTIME.
fuzz:
	@set -e; for p in $$($(GO) list ./...); do \
	  for f in $$($(GO) test -list '^Fuzz' $$p | grep '^Fuzz' || true); do \
	    echo "$$p $$f for $(FUZZTIME)"; \
	    $(GO) test -run '^$$' -fuzz "^$$f\$$" -fuzztime $(FUZZTIME) $$p; \
	  done; \
	done

bench:
	$(call in-each,$(code),$(GO) test -run '^$$' -bench . -benchmem -benchtime $(BENCHTIME) ./...)

# The chaos campaign: random faults of every kind, effects counted on the server. A
# failing seed is printed, and brings the same plans back. CHAOS_CALLS counts intents,
# each of which is called about twice.
chaos: export CHAOS_CALLS ?= 100000
chaos: export CHAOS_SEED ?= random
chaos:
	$(GO) test -race -count=1 -run '^TestChaos$$' -v -timeout 3h ./middleware

# The soak: 64 callers for SOAK_TIME, in sessions that are opened once, at servers that
# never come to rest. SOAK_SEED brings the plans of one back.
soak: export SOAK_TIME ?= 10m
soak: export SOAK_SEED ?= random
soak:
	$(GO) test -race -count=1 -run '^TestSoak$$' -v -timeout 3h ./middleware

# The crash campaign: processes that pay with the whole library over the file store are
# killed at random moments, KILLS times. SURECALL_CRASH_SEED repeats one.
crash:
	cd idempotency/boltstore && SURECALL_CRASH_KILLS=$(or $(KILLS),200) $(GO) test -count=1 -run '^TestCrashes$$' -v -timeout 3h .

# The official conformance referee, with the SDK's client bare and with surecall around
# it: both must come to the same. Needs npm, which installs the referee and, on Linux
# (x64), the Node 22 that it needs under example/conformance/node_modules.
conformance:
	@command -v npm >/dev/null || { echo "missing: npm, which comes with Node (https://nodejs.org)"; exit 1; }
	npm ci --prefix example/conformance --no-audit --no-fund --loglevel=error
	$(GO) build -o bin/conformance ./example/conformance
	$(GO) run ./example/conformance/compare -client bin/conformance

# MCP servers that other people wrote, with the SDK's client bare and with surecall around
# it: the host must get the same. Writes docs/real-servers.md. Needs npm, as above, under
# example/realservers/node_modules.
realservers:
	@command -v npm >/dev/null || { echo "missing: npm, which comes with Node (https://nodejs.org)"; exit 1; }
	npm ci --prefix example/realservers --no-audit --no-fund --loglevel=error
	$(GO) run ./example/realservers -table docs/real-servers.md
