#!/usr/bin/env bash
# Installs nono, the sandbox that some tests of cradle run in for real, into cargo's own bin folder. It takes about ten minutes
# on a small machine, and no time when it is there already.
set -euo pipefail

version=0.66.0

if command -v nono >/dev/null || [ -x "${CARGO_HOME:-$HOME/.cargo}/bin/nono" ]; then
	exit 0
fi
exec cargo install nono-cli --version "$version" --locked --quiet
