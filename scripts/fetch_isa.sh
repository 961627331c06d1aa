#!/usr/bin/env bash
# Downloads AMD's machine-readable ISA descriptions (published under the MIT licence) and puts the RDNA 3, 3.5 and 4 files
# where a build of wavesim reads them.
#
#   scripts/fetch_isa.sh [DIR]                             default DIR: isa-amd
#   WAVESIM_ISA_DIR=DIR cargo build --release -p wavesim   compile them in, instead of data/
#
# ISA_URL may name another archive, or a file already downloaded (file:///...).
set -euo pipefail

url=${ISA_URL:-https://gpuopen.com/download/machine-readable-isa/latest/}
dir=${1:-isa-amd}

fail() {
    echo "fetch_isa: $*" >&2
    exit 1
}

case "$dir" in
    -h | --help)
        sed -n '2,8s/^# \{0,1\}//p' "$0"
        exit 0
        ;;
    -*) echo "usage: $0 [DIR]" >&2; exit 2 ;;
esac
for tool in curl unzip; do
    command -v "$tool" >/dev/null || fail "needs $tool, which is not installed"
done

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

echo "fetching $url"
curl --fail --location --silent --show-error --connect-timeout 20 --retry 2 --output "$work/isa.zip" "$url" ||
    fail "cannot download $url. Is there a connection? Otherwise download the archive elsewhere and run
    ISA_URL=file:///path/to/archive.zip $0 $dir"
unzip -tq "$work/isa.zip" >/dev/null 2>&1 ||
    fail "what $url gave is not a zip archive (a page, perhaps): set ISA_URL to the archive's address"
unzip -oq "$work/isa.zip" -d "$work/isa"

# AMD's name on the left, the name in data/ on the right. Separators differ between releases: only letters and digits are
# compared.
pick() {
    local wanted=$1 target=$2 file name
    while IFS= read -r file; do
        name=$(basename "$file" .xml | tr -cd '[:alnum:]' | tr '[:upper:]' '[:lower:]')
        if [ "$name" = "$wanted" ]; then
            cp "$file" "$dir/$target"
            echo "  $dir/$target  from $(basename "$file")"
            return 0
        fi
    done < <(find "$work/isa" -iname '*.xml' | sort)
    missing+=("$wanted")
}

mkdir -p "$dir" || fail "cannot create $dir"
missing=()
pick amdgpuisardna3 isa_rdna3.xml
pick amdgpuisardna35 isa_rdna35.xml
pick amdgpuisardna4 isa_rdna4.xml
if [ ${#missing[@]} -gt 0 ]; then
    echo "fetch_isa: the archive has no file for: ${missing[*]}. It holds:" >&2
    find "$work/isa" -iname '*.xml' -exec basename {} \; | sort | sed 's/^/  /' >&2
    exit 1
fi

cat <<END
Compile them in with
    WAVESIM_ISA_DIR=$(cd "$dir" && pwd) cargo build --release -p wavesim
or copy them over data/isa_*.xml and rebuild. Corrections in data/overlay/ apply to them too.
END
