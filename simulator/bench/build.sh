#!/usr/bin/env bash
# Compiles the benchmark workloads to the code objects that `wavesim bench` embeds. Needs clang-19 and lld-19.
set -euo pipefail
cd "$(dirname "$0")"
for source in *.s; do
  clang-19 -target amdgcn-amd-amdhsa -mcpu=gfx1100 -I. "$source" -o "${source%.s}.co"
done
for source in *.cl; do
  clang-19 -target amdgcn-amd-amdhsa -mcpu=gfx1100 -x cl -cl-std=CL2.0 -nogpulib -O3 -mcumode -ffp-contract=off \
    "$source" -o "${source%.cl}.co"
done
