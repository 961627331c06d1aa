#!/usr/bin/env bash
# Unpacks LLVM 22 (llvm-mc, clang, lld, libclc), the first version that knows CDNA 4 and 5, beside the installed LLVM: into FOLDER,
# by default $XDG_CACHE_HOME/wavesim/llvm-22. Its folder bin has llvm-mc-22 and so on, which tests find there. Nothing is installed.
#
# usage: install-llvm22.sh [FOLDER]. Without Debian's packages, it prints a line and succeeds; tests that need them are skipped.
set -euo pipefail
case ${1:-} in
    -h | --help)
        sed -n '2,5s/^# \{0,1\}//p' "$0"
        exit 0
        ;;
esac
folder=${1:-${XDG_CACHE_HOME:-$HOME/.cache}/wavesim/llvm-22}
# The version whose text and words the tests expect. Others of 22.1 differ in nothing that they compare.
version=22.1
packages="llvm-22 clang-22 lld-22 libllvm22 libclang-cpp22 llvm-22-linker-tools libclang-common-22-dev libclc-22 libclc-22-dev"
tools="llvm-mc llvm-objdump llvm-readelf llvm-objcopy llc opt clang clang++ ld.lld clang-offload-bundler"
skip() {
    echo "not installed: LLVM $version ($1); tests that need it are skipped"
    exit 0
}
is_there() { "$folder/bin/llvm-mc-22" --version 2>/dev/null | grep -q "LLVM version $version\."; }
is_there && exit 0
command -v apt-get >/dev/null && command -v dpkg >/dev/null || skip "this is no Debian"
mkdir -p "$(dirname "$folder")"
new=$(mktemp -d "$folder.XXXXXX")
trap 'rm -rf "$new"' EXIT
# Any user may download; apt's own user need not be able to write to the folder.
download() { (cd "$new" && apt-get -qq -o APT::Sandbox::User=root download $packages) 2>"$new/log"; }
if ! download; then
    [ "$(id -u)" -eq 0 ] && apt-get -qq update 2>/dev/null || true
    download || skip "$(grep -m1 '^E:' "$new/log" || echo "apt-get download failed")"
fi
for package in "$new"/*.deb; do
    dpkg -x "$package" "$new" || skip "$package cannot be unpacked"
done
rm -f "$new"/*.deb "$new/log"
mkdir "$new/bin"
for tool in $tools; do
    [ -e "$new/usr/lib/llvm-22/bin/$tool" ] || continue
    {
        echo '#!/bin/sh'
        echo 'root=$(dirname "$(dirname "$(readlink -f "$0")")")/usr/lib'
        echo 'LD_LIBRARY_PATH=$root/x86_64-linux-gnu:$root/llvm-22/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}'
        echo 'export LD_LIBRARY_PATH'
        echo "exec \"\$root/llvm-22/bin/$tool\" \"\$@\""
    } >"$new/bin/$tool-22"
    chmod +x "$new/bin/$tool-22"
done
chmod 755 "$new"
rm -rf "$folder"
mv "$new" "$folder"
is_there || skip "the packages are of another version, or a library that they need is missing"
echo "installed: LLVM $version in $folder"
