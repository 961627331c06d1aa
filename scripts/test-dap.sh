#!/usr/bin/env bash
# Drives `wavesim dap` with the client library of Visual Studio Code's debug adapters (tests/dap/). The library comes from
# npm, once. Without Node.js, npm or a network, the tests are skipped, and the script succeeds.
set -euo pipefail
cd "$(dirname "$0")/.."
for tool in node npm; do
    if ! command -v "$tool" >/dev/null; then
        echo "skipped: sessions of the debug adapter need $tool"
        exit 0
    fi
done
folder=${CARGO_TARGET_DIR:-target}/dap-client
mkdir -p "$folder"
cp tests/dap/package.json tests/dap/session.test.js "$folder"
if [ ! -d "$folder/node_modules/@vscode/debugadapter-testsupport" ]; then
    if ! npm install --prefix "$folder" --no-audit --no-fund --silent; then
        echo "skipped: @vscode/debugadapter-testsupport could not be installed"
        exit 0
    fi
fi
WAVESIM=$(realpath "${WAVESIM:-target/release/wavesim}") ROOT=$PWD node --test --test-timeout=120000 "$folder/session.test.js"
