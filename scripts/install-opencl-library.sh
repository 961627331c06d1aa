#!/bin/sh
# Builds the OpenCL platform and installs it with the file by which libOpenCL finds it: install-opencl-library.sh FOLDER, for OCL_ICD_VENDORS.
# PROFILE=dev takes the unoptimised build; LIBRARY=FILE takes one that is built already.
set -eu
case ${1:-} in
    -h | --help)
        sed -n '2,3s/^# \{0,1\}//p' "$0"
        exit 0
        ;;
    '' | -*)
        echo "usage: $0 FOLDER" >&2
        exit 2
        ;;
esac
folder=$1
mkdir -p "$folder"
folder=$(cd "$folder" && pwd)
cd "$(dirname "$0")/.."
profile=${PROFILE:-release}
if [ -z "${LIBRARY:-}" ]; then
    cargo build --quiet --profile "$profile" -p wavesim-opencl
    case $profile in dev) built=debug ;; *) built=$profile ;; esac
    LIBRARY=${CARGO_TARGET_DIR:-target}/$built/libwavesim_opencl.so
fi
if [ ! -f "$LIBRARY" ]; then
    echo "install-opencl-library.sh: there is no library $LIBRARY" >&2
    exit 1
fi
install -m 755 "$LIBRARY" "$folder/libwavesim_opencl.so"
echo "$folder/libwavesim_opencl.so" > "$folder/wavesim.icd"
echo "installed $folder/libwavesim_opencl.so and $folder/wavesim.icd"
