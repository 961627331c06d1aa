# Sourced by the scripts that install the library of a host. They set `usage`, the lines of their help, `package` and `file`, cargo's name
# for the library's crate and the library's own, and pass their arguments. It sets `folder`, where the library is then.
case ${1:-} in
    -h | --help)
        sed -n "$usage"'s/^# \{0,1\}//p' "$0"
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
case ${LIBRARY:-} in
    '' | /*) ;;
    *) LIBRARY=$PWD/$LIBRARY ;;
esac
cd "$(dirname "$0")/.."
if [ -z "${LIBRARY:-}" ]; then
    profile=${PROFILE:-release}
    cargo build --quiet --profile "$profile" -p "$package"
    case $profile in dev) built=debug ;; *) built=$profile ;; esac
    LIBRARY=${CARGO_TARGET_DIR:-target}/$built/$file
fi
if [ ! -f "$LIBRARY" ]; then
    echo "$(basename "$0"): there is no library $LIBRARY" >&2
    exit 1
fi
install -m 755 "$LIBRARY" "$folder/$file"
