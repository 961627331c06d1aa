#!/bin/sh
# Builds and installs a library; --help says how.
exec cargo run --quiet --release --manifest-path "$(dirname "$0")/../xtask/Cargo.toml" -- install-hip-library "$@"
