#!/bin/sh
# Builds the OpenCL platform and installs it with its ICD file, for OCL_ICD_VENDORS: install-opencl-library.sh FOLDER.
# PROFILE=dev uses the unoptimised build; LIBRARY=FILE an existing build.
set -eu
usage=2,3 package=wavesim-opencl file=libwavesim_opencl.so
. "$(dirname "$0")/install-host-library.sh"
echo "$folder/libwavesim_opencl.so" > "$folder/wavesim.icd"
echo "installed $folder/libwavesim_opencl.so and $folder/wavesim.icd"
