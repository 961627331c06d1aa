#!/bin/sh
# Builds the OpenCL platform and installs it with the file by which libOpenCL finds it: install-opencl-library.sh FOLDER, for OCL_ICD_VENDORS.
# PROFILE=dev takes the unoptimised build; LIBRARY=FILE takes one that is built already.
set -eu
usage=2,3 package=wavesim-opencl file=libwavesim_opencl.so
. "$(dirname "$0")/install-host-library.sh"
echo "$folder/libwavesim_opencl.so" > "$folder/wavesim.icd"
echo "installed $folder/libwavesim_opencl.so and $folder/wavesim.icd"
