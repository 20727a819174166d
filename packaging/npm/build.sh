#!/usr/bin/env bash
# packaging/npm/build.sh OUT   writes OUT/posenc-VERSION.tgz, the npm package, from this tree.
# The same sources and tools give the same bytes: every file has the date SOURCE_DATE_EPOCH (default: a fixed one).
# POSENC_PRESET names the build that is used (release). What is missing on Debian is installed, as ./run explore does it.
set -euo pipefail
here=$(dirname -- "$(readlink -f -- "${BASH_SOURCE[0]}")")
root=${here%/packaging/npm}
source "$root/cmake/setup.sh"
source "$root/packaging/archive.sh"
check_output packaging/npm/build.sh "$@"
preset=${POSENC_PRESET:-release}
set_up "${build_needs[@]}" "${explorer_needs[@]}"
configure "$preset" -DPOSENC_EXPLORER=ON
build "$preset" posenc_npm
pack_npm "$root/build/$preset/npm" "$1"
