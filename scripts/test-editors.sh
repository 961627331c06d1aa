#!/usr/bin/env bash
# Drives `wavesim lsp` as editors do: with the client library of Visual Studio Code, from the packed extension, and from a
# headless Neovim (tests/lsp/, editors/neovim/). The libraries come from npm, once. What is missing is skipped, and the script
# succeeds.
set -euo pipefail
cd "$(dirname "$0")/.."
target=${CARGO_TARGET_DIR:-target}
wavesim=$(realpath "${WAVESIM:-$target/release/wavesim}")
if command -v nvim >/dev/null; then
    WAVESIM=$wavesim nvim --headless --clean -c 'luafile editors/neovim/check_lsp.lua' 2>&1
    echo
else
    echo "skipped: sessions of Neovim need nvim"
fi
if command -v emacs >/dev/null; then
    emacs --batch --directory editors/emacs --load wavesim --eval '(with-temp-buffer
        (insert-file-contents "examples/vector_add.rdna")
        (wavesim-kernel-mode)
        (font-lock-ensure)
        (search-forward "v_add_f32")
        (unless (eq (get-text-property (1- (point)) (quote face)) (quote font-lock-keyword-face)) (kill-emacs 1)))'
    echo "Emacs: passed"
else
    echo "skipped: the mode of Emacs needs emacs"
fi
for tool in node npm unzip; do
    if ! command -v "$tool" >/dev/null; then
        echo "skipped: sessions of the language server need $tool"
        exit 0
    fi
done
folder=$target/lsp-client
mkdir -p "$folder"
cp tests/lsp/package.json tests/lsp/session.test.js "$folder"
if [ ! -d "$folder/node_modules/vscode-textmate" ]; then
    if ! npm install --prefix "$folder" --no-audit --no-fund --silent; then
        echo "skipped: vscode-languageserver-protocol could not be installed"
        exit 0
    fi
fi
# `wavesim` itself must be found in PATH, as by the editor.
ln -sfn "$wavesim" "$folder/wavesim"
rm -rf "$folder/vsix"
vsix=
if scripts/package-vscode.sh "$folder/wavesim.vsix" >/dev/null 2>&1; then
    unzip -q "$folder/wavesim.vsix" 'extension/*' -d "$folder/vsix"
    vsix=$folder/vsix/extension
else
    echo "skipped: the extension could not be packed"
fi
WAVESIM=$(realpath -s "$folder/wavesim") ROOT=$PWD VSIX=${vsix:+$(realpath "$vsix")} \
    node --test --test-timeout=120000 "$folder/session.test.js"
