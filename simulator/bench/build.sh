#!/usr/bin/env bash
# Compiles the benchmark workloads to the code objects that `wavesim bench` embeds: for waves of 32 and of 64 on RDNA 3 (NAME.co and
# NAME.wave64.co), for CDNA 3 (NAME.cdna3.co), RDNA 4 (NAME.rdna4.co) and CDNA 5 (NAME.cdna5.co). Needs clang-19 and lld-19, and for CDNA 5
# LLVM 22 as scripts/install-llvm22.sh unpacks it.
set -euo pipefail
cd "$(dirname "$0")"
clang() { clang-19 -target amdgcn-amd-amdhsa "$@"; }
llvm22="${XDG_CACHE_HOME:-$HOME/.cache}/wavesim/llvm-22/bin"
clang22() { PATH="$llvm22:$PATH" clang-22 -target amdgcn-amd-amdhsa -mcpu=gfx1250 "$@"; }
for source in *.s; do
  case $source in empty.s | scale.s) continue ;; esac
  name=${source%.s}
  clang -mcpu=gfx1100 -I. -Wa,-defsym,WAVE=32 "$source" -o "$name.co"
  clang -mcpu=gfx1100 -mwavefrontsize64 -I. -Wa,-defsym,WAVE=64 "$source" -o "$name.wave64.co"
  clang -mcpu=gfx942 -I. -Wa,-defsym,WAVE=64 -Wa,-defsym,CDNA=1 "$source" -o "$name.cdna3.co"
  clang -mcpu=gfx1201 -I. -Wa,-defsym,WAVE=32 -Wa,-defsym,GFX12=1 "$source" -o "$name.rdna4.co"
  clang22 -I. -Wa,-defsym,WAVE=32 -Wa,-defsym,GFX12=1 "$source" -o "$name.cdna5.co"
done
for source in *.cl; do
  name=${source%.cl}
  options="-x cl -cl-std=CL2.0 -nogpulib -O3 -ffp-contract=off"
  clang -mcpu=gfx1100 -mcumode $options "$source" -o "$name.co"
  clang -mcpu=gfx1100 -mcumode -mwavefrontsize64 $options "$source" -o "$name.wave64.co"
  clang -mcpu=gfx942 $options "$source" -o "$name.cdna3.co"
  clang -mcpu=gfx1201 -mcumode $options "$source" -o "$name.rdna4.co"
  clang22 $options "$source" -o "$name.cdna5.co"
done
