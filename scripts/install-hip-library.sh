#!/bin/sh
# Builds libamdhip64, which is libhiprtc too, and installs it under the names of all releases of ROCm: install-hip-library.sh FOLDER, for LD_LIBRARY_PATH.
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
    cargo build --quiet --profile "$profile" -p wavesim-hip
    case $profile in dev) built=debug ;; *) built=$profile ;; esac
    LIBRARY=${CARGO_TARGET_DIR:-target}/$built/libamdhip64.so
fi
if [ ! -f "$LIBRARY" ]; then
    echo "install-hip-library.sh: there is no library $LIBRARY" >&2
    exit 1
fi
install -m 755 "$LIBRARY" "$folder/libamdhip64.so"
ln -sf libamdhip64.so "$folder/libhiprtc.so"
for version in 5 6 7; do
    ln -sf libamdhip64.so "$folder/libamdhip64.so.$version"
    ln -sf libamdhip64.so "$folder/libhiprtc.so.$version"
done
echo "installed $folder/libamdhip64.so, and links for ROCm 5, 6 and 7 and for libhiprtc"
