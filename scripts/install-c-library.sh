#!/bin/sh
# Builds the C library and installs it with its header: install-c-library.sh [PREFIX], by default /usr/local.
# DESTDIR is put before PREFIX, as packagers want it; PROFILE=dev takes the unoptimised build.
set -eu
cd "$(dirname "$0")/.."
prefix=${1:-/usr/local}
profile=${PROFILE:-release}
root=${DESTDIR:-}$prefix
cargo build --quiet --profile "$profile" -p wavesim-capi
case $profile in dev) built=debug ;; *) built=$profile ;; esac
from=${CARGO_TARGET_DIR:-target}/$built
version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -n 1)
for name in libwavesim_capi.so libwavesim_capi.dylib; do
    [ ! -f "$from/$name" ] || library=$name
done
mkdir -p "$root/include" "$root/lib/pkgconfig"
install -m 644 capi/include/wavesim.h "$root/include/wavesim.h"
install -m 755 "$from/$library" "$root/lib/$library"
cat > "$root/lib/pkgconfig/wavesim.pc" <<END
prefix=$prefix
Name: wavesim
Description: Functional simulator for AMD RDNA GPUs
Version: $version
Cflags: -I\${prefix}/include
Libs: -L\${prefix}/lib -lwavesim_capi
END
echo "installed $root/include/wavesim.h, $root/lib/$library, $root/lib/pkgconfig/wavesim.pc"
