#!/usr/bin/env bash
# The step of action.yml: checks the kernels FILES with the arguments ARGUMENTS, both separated by spaces.
set -euo pipefail
mkdir -p "$REPORTS"
# Lists of words, in which patterns are expanded.
# shellcheck disable=SC2086
"$WAVESIM" check --annotate --threads "$(getconf _NPROCESSORS_ONLN)" --junit "$REPORTS/junit.xml" \
    --sarif "$REPORTS/findings.sarif" --html "$REPORTS/report.html" $ARGUMENTS -- $FILES
