#!/bin/sh
# Builds the C library and installs it with its header: install-c-library.sh [PREFIX], by default /usr/local.
# DESTDIR is prepended to PREFIX, for packagers; PROFILE=dev uses the unoptimised build; LIBRARY=FILE an existing build.
set -eu
case ${1:-} in
    -h | --help)
        sed -n '2,3s/^# \{0,1\}//p' "$0"
        exit 0
        ;;
    -*)
        echo "usage: $0 [PREFIX]" >&2
        exit 2
        ;;
esac
cd "$(dirname "$0")/.."
prefix=${1:-/usr/local}
profile=${PROFILE:-release}
root=${DESTDIR:-}$prefix
if [ -z "${LIBRARY:-}" ]; then
    cargo build --quiet --profile "$profile" -p wavesim-capi
    case $profile in dev) built=debug ;; *) built=$profile ;; esac
    for file in "${CARGO_TARGET_DIR:-target}/$built"/libwavesim_capi.so "${CARGO_TARGET_DIR:-target}/$built"/libwavesim_capi.dylib; do
        [ ! -f "$file" ] || LIBRARY=$file
    done
fi
if [ ! -f "${LIBRARY:-}" ]; then
    echo "install-c-library.sh: there is no library ${LIBRARY:-in ${CARGO_TARGET_DIR:-target}/$built}" >&2
    exit 1
fi
version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -n 1)
name=$(basename "$LIBRARY")
mkdir -p "$root/include" "$root/lib/pkgconfig"
install -m 644 capi/include/wavesim.h "$root/include/wavesim.h"
install -m 755 "$LIBRARY" "$root/lib/$name"
cat > "$root/lib/pkgconfig/wavesim.pc" <<END
prefix=$prefix
Name: wavesim
Description: Functional simulator for AMD GPUs
Version: $version
Cflags: -I\${prefix}/include
Libs: -L\${prefix}/lib -lwavesim_capi
END
echo "installed $root/include/wavesim.h, $root/lib/$name, $root/lib/pkgconfig/wavesim.pc"
