# CONTRIBUTING.md says what each rung of the test ladder is for.
cache := $(or $(HOPWIRE_CACHE),$(or $(XDG_CACHE_HOME),$(HOME)/.cache)/hopwire)
core   = $(shell go list ./... | grep -v /test/)
bench  = -benchtime 1x -count $(or $(ROUNDS),1) -timeout 60m

.PHONY: build test race lint fmt vuln sim interop unittests bench bench-backlog soak deps

build:
	CGO_ENABLED=0 go build -trimpath -o bin/ ./cmd/...

test:
	@go run ./test/need/missing
	go test -timeout 20m ./...

race:
	go test -race -tags invariants -short -shuffle on -timeout 10m $(core)

lint:
	@test -z "$$(gofmt -l .)" || { echo "run gofmt -w on:"; gofmt -l .; exit 1; }
	go vet ./...
	$(cache)/bin/golangci-lint run ./...

fmt:
	$(cache)/bin/golangci-lint fmt ./...

vuln:
	scripts/vuln.sh

sim:
	go test -count 1 -timeout 15m ./internal/sim/... ./test/network/...

interop:
	go test -count 1 -timeout 20m ./test/interop/...

# ACTIVEMQ_SOURCES names a checkout of ActiveMQ: docs/compatibility.md.
unittests:
	go test -count 1 -v -timeout 0 ./test/interop/unittests

bench:
	mkdir -p out
	go test -run '^$$' -bench 'Core|Hop' $(bench) ./test/bench | tee out/bench.txt
	$(cache)/bin/benchstat -col /broker -filter '.unit:(brokerµs/msg OR msg/s OR p50-µs)' out/bench.txt

bench-backlog:
	mkdir -p out
	go test -run '^$$' -bench Backlog $(bench) ./test/bench | tee out/backlog.txt
	$(cache)/bin/benchstat -col /broker out/backlog.txt
	BACKLOG=1000000 go test -count 1 -v -run Backlog -timeout 20m ./test/hostile

soak:
	HOPWIRE_SOAK=1 HOPWIRE_SOAK_TIME=$(or $(TIME),30m) go test -count 1 -timeout 0 ./...

deps:
	scripts/deps.sh
