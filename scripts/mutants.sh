#!/usr/bin/env bash
# Mutation testing of source files with cargo-mutants: detects changes of the code that no test notices.
#
#   scripts/mutants.sh FILE...           tests each mutant of these files
#   scripts/mutants.sh --list FILE...    only lists them
#
# Each mutant is compiled and tested with the tests of the file's package, and, below simulator/, with the binaries all and
# filetests of the package wavesim-tests. TESTS=PACKAGE,... names further packages. The tree is changed in place: do not edit it
# meanwhile. PROFILE=dev uses the unoptimised build; TIMEOUT=SECONDS limits the tests of one mutant (default 600). The lists of
# caught and missed mutants are in target/mutants.out. It needs cargo-mutants (`cargo install cargo-mutants`).
set -euo pipefail
case ${1:-} in
    -h | --help)
        sed -n '2,10s/^# \{0,1\}//p' "$0"
        exit 0
        ;;
esac
usage() {
    echo "usage: $0 [--list] FILE..." >&2
    exit 2
}
fail() {
    echo "mutants.sh: $*" >&2
    exit 1
}
list=()
if [ "${1:-}" = --list ]; then
    list=(--list)
    shift
fi
[ $# -gt 0 ] || usage

root=$(cd "$(dirname "$0")/.." && pwd -P)
files=()
packages=()
tests=()
# Adds a package to those whose tests run.
test_of() {
    case " ${tests[*]:-} " in
        *" $1 "*) ;;
        *) tests+=("$1") ;;
    esac
}
for file in "$@"; do
    case $file in -*) usage ;; esac
    [ -f "$file" ] || fail "there is no file $file"
    folder=$(cd "$(dirname "$file")" && pwd -P)
    file=$folder/$(basename "$file")
    case $file in
        "$root"/fuzz/* | "$root"/web/*) fail "${file#"$root"/} is in a workspace of its own, which this does not test" ;;
        "$root"/*.rs) file=${file#"$root"/} ;;
        *) fail "$file is not a Rust file of this workspace" ;;
    esac
    while [ "$folder" != "$root" ] && [ ! -f "$folder/Cargo.toml" ]; do folder=$(dirname "$folder"); done
    [ "$folder" != "$root" ] || fail "$file is in no package"
    package=$(sed -n 's/^name = "\(.*\)"/\1/p' "$folder/Cargo.toml" | head -n 1)
    files+=(--file "$file")
    packages+=(--package "$package")
    test_of "$package"
    case $file in simulator/*) test_of wavesim-tests ;; esac
done
IFS=, read -ra more <<<"${TESTS:-}"
for package in "${more[@]}"; do test_of "$package"; done

cargo mutants --version >/dev/null 2>&1 || fail "cargo-mutants is not installed: cargo install cargo-mutants"
cd "$root"
if [ ${#list[@]} -gt 0 ]; then
    exec cargo mutants --list "${packages[@]}" "${files[@]}"
fi
# A mutant left by an interrupted run can then be reverted without losing changes.
named=()
for ((at = 1; at < ${#files[@]}; at += 2)); do named+=("${files[at]}"); done
git diff --quiet HEAD -- "${named[@]}" || fail "commit the changes of ${named[*]} first: mutants are made in place"
left() {
    if ! git diff --quiet HEAD -- "${named[@]}"; then
        echo "mutants.sh: a mutant is left in the tree: git checkout HEAD -- ${named[*]}" >&2
    fi
}
trap left EXIT
# Random tests use the same seed for each mutant, and do not store its failures in the tree; expectations are not rewritten.
export PROPTEST_RNG_SEED=${PROPTEST_RNG_SEED:-1} PROPTEST_DISABLE_FAILURE_PERSISTENCE=true
unset BLESS
output=${CARGO_TARGET_DIR:-target}
mkdir -p "$output"
selected=()
for package in "${tests[@]}"; do selected+=(--test-package "$package"); done
cargo mutants --in-place --profile "${PROFILE:-release}" --timeout "${TIMEOUT:-600}" --output "$output" \
    "${packages[@]}" "${files[@]}" "${selected[@]}"
