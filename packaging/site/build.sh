#!/usr/bin/env bash
# packaging/site/build.sh OUT   writes OUT/posenc-site-VERSION.tar.gz: the web explorer as one folder of files, for any static
# host and any path below it; every address in it is relative. Its folder reference is the API reference (reference.py).
# The same sources and tools give the same bytes: every file has the date SOURCE_DATE_EPOCH (default: a fixed one).
# POSENC_PRESET names the build that is used (release). What is missing on Debian is installed, as ./run explore does it.
set -euo pipefail
here=$(dirname -- "$(readlink -f -- "${BASH_SOURCE[0]}")")
root=${here%/packaging/site}
source "$root/cmake/setup.sh"
source "$root/packaging/archive.sh"
check_output packaging/site/build.sh "$@"
preset=${POSENC_PRESET:-release}
set_up "${build_needs[@]}" "${python_needs[@]}" "${explorer_needs[@]}"
configure "$preset" -DPOSENC_EXPLORER=ON
build "$preset" posenc_explorer posenc_python_package
pack_site "$root/build/$preset/explorer/posenc" "$1"
