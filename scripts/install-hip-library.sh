#!/bin/sh
# Builds libamdhip64, which is libhiprtc too, and installs it under the names of all releases of ROCm: install-hip-library.sh FOLDER, for LD_LIBRARY_PATH.
# PROFILE=dev takes the unoptimised build; LIBRARY=FILE takes one that is built already.
set -eu
usage=2,3 package=wavesim-hip file=libamdhip64.so
. "$(dirname "$0")/install-host-library.sh"
ln -sf libamdhip64.so "$folder/libhiprtc.so"
for version in 5 6 7; do
    ln -sf libamdhip64.so "$folder/libamdhip64.so.$version"
    ln -sf libamdhip64.so "$folder/libhiprtc.so.$version"
done
echo "installed $folder/libamdhip64.so, and links for ROCm 5, 6 and 7 and for libhiprtc"
