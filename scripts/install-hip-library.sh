#!/bin/sh
# Builds libamdhip64, which also is libhiprtc, and installs it under the names of all ROCm releases, for LD_LIBRARY_PATH:
# install-hip-library.sh FOLDER. PROFILE=dev uses the unoptimised build; LIBRARY=FILE an existing build.
set -eu
usage=2,3 package=wavesim-hip file=libamdhip64.so
. "$(dirname "$0")/install-host-library.sh"
ln -sf libamdhip64.so "$folder/libhiprtc.so"
for version in 5 6 7; do
    ln -sf libamdhip64.so "$folder/libamdhip64.so.$version"
    ln -sf libamdhip64.so "$folder/libhiprtc.so.$version"
done
# Libraries for profilers, whose functions it has: programs and libraries are linked to them.
ln -sf libamdhip64.so "$folder/libroctx64.so.4"
ln -sf libamdhip64.so "$folder/libroctracer64.so.4"
echo "installed $folder/libamdhip64.so, and links for ROCm 5, 6 and 7 libhiprtc, libroctx64 and libroctracer64"
