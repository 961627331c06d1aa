#!/bin/sh
# Installs what a release consists of on a machine without a compiler, and runs the examples of README and examples/ with each.
# usage: test-packages.sh DIST [WHEELS]     DIST: the folder of `cargo xtask dist --deb` and `installers`; WHEELS: that of wheels
#
# It installs the Debian package for the whole system and needs root: run it in a container, or in a root directory that
# debootstrap has made. Wheels need python3 with venv.
set -eu
dist=$(realpath "$1")
wheels=${2:+$(realpath "$2")}
for compiler in cc gcc clang rustc; do
    if command -v $compiler >/dev/null; then
        echo "test-packages.sh: $compiler is installed: this shows nothing about machines without it" >&2
        exit 1
    fi
done
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

# Runs README's example and the others with a command: kernels that are wrong must have findings, all others none.
run() {
    name=$1 wavesim=$2 examples=$3
    "$wavesim" --version
    if "$wavesim" check "$examples/broken/missing_wait.rdna" >"$folder/report"; then
        echo "$name: no finding in missing_wait.rdna" >&2
        exit 1
    fi
    grep -q 'waits: v2 is read before the wait' "$folder/report"
    count=0
    for kernel in "$examples"/*.rdna; do
        defines=
        if grep -qw N "$kernel" && ! grep -q 'const N' "$kernel"; then defines='-D N=16'; fi
        # shellcheck disable=SC2086
        "$wavesim" run "$kernel" $defines --engine jit >/dev/null
        # shellcheck disable=SC2086
        "$wavesim" check "$kernel" $defines >/dev/null
        count=$((count + 1))
    done
    "$wavesim" run "$examples/scale.s" --grid 2 --block 32 --arg 'x: f32[50]=arange(50)' --arg 'out_y: f32[50]' --arg 2.5 \
        --arg i32=50 | grep -q '120.  122.5'
    echo "$name: README's example, $count kernels and scale.s"
}

# The archive, as install.sh unpacks it below a prefix. It loads the archive from DIST.
mkdir -p "$folder/bin"
cat >"$folder/bin/curl" <<END
#!/bin/sh
while [ "\$1" != --output ]; do shift; done
cp "$dist/\${3##*/}" "\$2"
END
chmod +x "$folder/bin/curl"
PATH=$folder/bin:$PATH sh "$dist/install.sh" "$folder/prefix"
run archive "$folder/prefix/bin/wavesim" "$folder/prefix/share/doc/wavesim/examples"
for file in share/man/man1/wavesim-run.1 share/bash-completion/completions/wavesim share/zsh/site-functions/_wavesim \
    lib/wavesim/hip/libamdhip64.so include/wavesim.h; do
    [ -e "$folder/prefix/$file" ] || { echo "the archive has no $file"; exit 1; }
done

dpkg -i "$dist"/wavesim_*_"$(dpkg --print-architecture)".deb >/dev/null
run 'Debian package' /usr/bin/wavesim /usr/share/doc/wavesim/examples
[ -z "$(ldd /usr/bin/wavesim /usr/lib/wavesim/hip/libamdhip64.so | grep 'not found')" ]
dpkg -r wavesim >/dev/null

if [ -n "$wheels" ]; then
    python3 -m venv "$folder/venv"
    "$folder/venv/bin/pip" install --quiet --no-index --find-links "$wheels" wavesim
    run wheel "$folder/venv/bin/wavesim" "$folder/prefix/share/doc/wavesim/examples"
    cd "$folder/prefix/share/doc/wavesim"
    "$folder/venv/bin/python" - <<'END'
import array, wavesim
scale = wavesim.Device("gfx1100").load("examples/scale.s").scale
x, y = array.array("f", range(50)), array.array("f", [0.0] * 50)
print("wheel:", scale[2, 32](x, y, 2.5, 50), y[49])
assert y[49] == 122.5
END
fi
