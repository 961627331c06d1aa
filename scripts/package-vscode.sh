#!/usr/bin/env bash
# Packs the extension for Visual Studio Code, with the client library that it needs, into FILE, by default
# target/wavesim.vsix. The library and the packer come from npm.
#
# usage: package-vscode.sh [FILE]
set -euo pipefail
case ${1:-} in
    -h | --help)
        sed -n '2,5s/^# \{0,1\}//p' "$0"
        exit 0
        ;;
esac
cd "$(dirname "$0")/.."
target=${CARGO_TARGET_DIR:-target}
file=$(realpath -m "${1:-$target/wavesim.vsix}")
folder=$target/vscode-extension
mkdir -p "$folder"
# A copy, so that the tree has no node_modules.
tar -C editors/vscode -cf - . | tar -C "$folder" -xf -
cp LICENSE-MIT "$folder/LICENSE"
cd "$folder"
npm ci --omit=dev --no-audit --no-fund --silent
# vsce itself, of a fixed version, outside of the extension's own packages.
mkdir -p ../vsce
[ -x ../vsce/node_modules/.bin/vsce ] || npm install --prefix ../vsce --no-save --no-audit --no-fund --silent @vscode/vsce@3.6.2
../vsce/node_modules/.bin/vsce package --allow-missing-repository --skip-license --out "$file" >/dev/null
echo "$file"
