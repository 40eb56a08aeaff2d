# Everything a newcomer needs: `make demo` shows it at work, `make test` checks all of it. Needs Go 1.26, Node 20 or newer with
# npm, git and tmux; pi, and a Node that can run it, come from npm as pinned in package-lock.json.
.PHONY: build test demo bench gen lint fuzz

SHELL := /bin/bash -eu -o pipefail
npm_bin := $(CURDIR)/node_modules/.bin
installed := node_modules/.package-lock.json
fuzztime ?= 20s
# The race detector needs a C compiler on Linux, which Go itself does not.
race := $(if $(filter 1,$(shell go env CGO_ENABLED)),-race)

build:
	CGO_ENABLED=0 go build -trimpath -ldflags='-s -w' -o bin/cradle ./cradle
	CGO_ENABLED=0 go build -trimpath -ldflags='-s -w' -o bin/cradle-helper ./helper

test: lint build
	$(npm_bin)/node --test 'ext-shim/**/*.test.ts'
	$(if $(race),,@echo "NO RACE DETECTOR: install a C compiler for it")
	CRADLE_TEST_BIN=$(CURDIR)/bin go test $(race) -shuffle=on -timeout=30m ./...

demo: $(installed) build
	CRADLE_TEST_BIN=$(CURDIR)/bin go run ./internal/demo

bench: $(installed) build
	CRADLE_TEST_BIN=$(CURDIR)/bin go test -run='^$$' -bench=. -benchtime=30x ./cradle ./squire
	CRADLE_TEST_BIN=$(CURDIR)/bin go run ./internal/bench

gen:
	go generate ./...

lint: $(installed)
	@unformatted=$$(git ls-files -co --exclude-standard '*.go' | xargs gofmt -l); [ -z "$$unformatted" ] || { echo "gofmt these: $$unformatted"; exit 1; }
	go vet ./...
	GOOS=$$([ $$(go env GOOS) = darwin ] && echo linux || echo darwin) go vet ./...
	go tool staticcheck ./...
	$(npm_bin)/tsc
	$(npm_bin)/biome ci --error-on-warnings

# Each fuzz target in turn, for $(fuzztime) each.
fuzz:
	@grep -rl --include='*_test.go' '^func Fuzz' . | while read -r file; do \
		for target in $$(sed -n 's/^func \(Fuzz[A-Za-z0-9_]*\)(.*/\1/p' "$$file"); do \
			echo "$$target in $$file"; go test -run='^$$' -fuzz="^$$target\$$" -fuzztime=$(fuzztime) "$$(dirname "$$file")"; \
		done; \
	done

# npm warns that pi wants a newer Node than the one npm runs on; the pinned one is what runs it.
$(installed): package.json package-lock.json internal/testenv/node/package.json
	npm ci --ignore-scripts --no-audit --no-fund --loglevel=error
	@touch $@
