#!/bin/bash
# Builds AMD's rocm-examples with their own Makefiles, runs them on wavesim and prints a table.
#
#   scripts/run-rocm-examples.sh CHECKOUT OUT [EXAMPLE...]
#
# CHECKOUT is a clone of https://github.com/ROCm/rocm-examples at commit 7dfb7d402794c33031be2847eaa06ee6732f07cb, OUT a
# folder for a copy with the programs and logs (they are kept and not built again), EXAMPLE a folder of HIP-Basic; without
# one, all but those that need OpenGL, Vulkan or hipify run. ROCM and BITCODE name the headers of HIP and ROCm's device
# libraries, HIP_LIBRARY the folder of wavesim's library (docs/hip.md). An example passes if it ends with status 0.
set -eu
if [ $# -lt 2 ]; then
    sed -n '2,10s/^# \{0,1\}//p' "$0" >&2
    exit 2
fi
[ -d "$1/HIP-Basic" ] || { echo "$1: no checkout of rocm-examples" >&2; exit 2; }
checkout=$(realpath "$1")
mkdir -p "$2"
out=$(realpath "$2")
shift 2
: "${ROCM:?the folder with include/hip}" "${BITCODE:?the folder of the device libraries}"
: "${HIP_LIBRARY:?the folder of libamdhip64.so}"
version=${LLVM_VERSION:-19}
target=${WAVESIM_TARGET:-gfx1100}

# What the Makefiles call as `hipcc`. Objects with device code need the link of HIP, code objects no library.
cat >"$out/hipcc" <<END
#!/bin/bash
flags=(--offload-arch=$target --rocm-path=$ROCM --rocm-device-lib-path=$BITCODE -Wno-unused-command-line-argument)
case " \$* " in
*" -c "* | *" --cuda-device-only "*) ;;
*" --genco "*)
    flags+=(--cuda-device-only)
    set -- "\${@/--genco/}"
    ;;
*) flags+=(--hip-link -L "$HIP_LIBRARY" -lamdhip64 -lhiprtc) ;;
esac
arguments=()
for argument; do [ -z "\$argument" ] || arguments+=("\$argument"); done
exec clang++-$version "\${arguments[@]}" "\${flags[@]}"
END
chmod +x "$out/hipcc"

[ -d "$out/examples" ] || mkdir "$out/examples"
[ -d "$out/examples/Common" ] || cp -r "$checkout/Common" "$checkout/HIP-Basic" "$out/examples/"
cd "$out/examples/HIP-Basic"
if [ $# -eq 0 ]; then
    mapfile -t examples < <(ls -d -- */Makefile | xargs -n1 dirname | grep -vE "^(opengl_interop|vulkan_interop|hipify)$")
    set -- "${examples[@]}"
fi

printf '%-28s %-8s %7s  %s\n' example result seconds remark
for example in "$@"; do
    log=$out/$example.log
    name=$(sed -n 's/^EXAMPLE := //p' "$example/Makefile")
    if ! make -C "$example" HIPCXX="$out/hipcc" CLANG="clang-$version --rocm-device-lib-path=$BITCODE" LLVM_MC="llvm-mc-$version" \
        LLVM_DIS="llvm-dis-$version" CLANG_OFFLOAD_BUNDLER="clang-offload-bundler-$version" \
        HIP_ARCHITECTURES="$target" ROCM_INSTALL_DIR="$ROCM" LDFLAGS="-L$HIP_LIBRARY" "$name" >"$log" 2>&1; then
        printf '%-28s %-8s %7s  %s\n' "$example" "-" - "not built: $(grep -m1 -o 'error: .*' "$log" | cut -c1-70)"
        continue
    fi
    started=$(date +%s)
    status=0
    (cd "$example" && LD_LIBRARY_PATH=$HIP_LIBRARY WAVESIM_ROCM_PATH=$ROCM WAVESIM_DEVICE_LIBS=$BITCODE \
        timeout --kill-after=5 "${SECONDS_EACH:-120}" "./$name" >>"$log" 2>&1) || status=$?
    result=passed
    [ $status -eq 0 ] || result=failed
    [ $status -ne 124 ] || result=stopped
    printf '%-28s %-8s %7s  %s\n' "$example" "$result" $(($(date +%s) - started)) "$(tail -1 "$log" | cut -c1-70)"
done
