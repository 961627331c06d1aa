# Sourced by the scripts that install the library of a host API. They set `usage` (the line range of their help),
# `package` (the cargo package) and `file` (the name of the library), and pass their arguments. It sets `folder`, the
# folder of the installed library.
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
