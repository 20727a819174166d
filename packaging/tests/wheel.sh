#!/usr/bin/env bash
# wheel.sh WHEEL SUITE [FOLDER]   installs a wheel into a bare Debian (bullseye, bookworm, trixie) that has Python and numpy alone, and
# runs the package's tests there (docs/guide/install.md). FOLDER is a bare Debian that bare.sh made, which is kept; else one is made and removed.
set -euo pipefail
here=$(dirname -- "$(readlink -f -- "${BASH_SOURCE[0]}")")
root=$(cd "$here/../.." && pwd)
fail() {
  echo "wheel test: $*" >&2
  exit 1
}
(($# == 2 || $# == 3)) || { sed -n '2,3s/^# \{0,1\}//p' "${BASH_SOURCE[0]}" >&2; exit 2; }
wheel=$1 suite=$2 folder=${3:-}
[[ -f $wheel && $wheel == *.whl ]] || fail "expected a wheel, got $wheel"
if [[ -z $folder ]]; then
  folder=$(mktemp -d)/$suite
  "$here/bare.sh" make "$suite" "$folder" python3 python3-numpy python3-venv
  trap '"$here/bare.sh" drop "$folder"' EXIT
fi
[[ -e $folder/etc/debian_version ]] || fail "there is no Debian in $folder"
try=$folder/opt/try
rm -rf "$try"
mkdir -p "$try"
cp "$wheel" "$try/"
# Of the tree only what the tests read: not the package, so that nothing but the wheel is imported.
git -C "$root" archive --format=tar HEAD python/tests python/README.md README.md docs examples tests/oracle/data include/posenc CHANGELOG.md | tar -x -C "$try"
cat >"$try/in.sh" <<'SCRIPT'
set -eu
cd /opt/try
python3 -m venv --system-site-packages venv
venv/bin/pip install -q --no-index --no-deps ./*.whl
echo "$(. /etc/os-release && echo "$PRETTY_NAME"), $(python3 --version), $(ldd --version | sed -n 1p), numpy $(python3 -c 'import numpy; print(numpy.__version__)')"
cd /tmp
LD_BIND_NOW=1 /opt/try/venv/bin/python -c 'import posenc; print("posenc", posenc.__version__, "from", posenc.__file__, posenc.backends() if hasattr(posenc, "backends") else "")'
passed=0 failed=0 skipped=0
for test in /opt/try/python/tests/*_test.py; do
  case $test in */packaging_test.py | */types_test.py) continue ;; esac  # of the build, not of what is installed
  status=0
  POSENC_ROOT=/opt/try /opt/try/venv/bin/python -B -X dev -W error "$test" >/tmp/log 2>&1 || status=$?
  case $status in
    0) passed=$((passed + 1)); echo "$(basename "$test"): $(grep -E '^Ran ' /tmp/log || true)" ;;
    77) skipped=$((skipped + 1)); echo "$(basename "$test"): skipped: $(tail -n 1 /tmp/log)" ;;
    *) failed=$((failed + 1)); echo "$(basename "$test"): FAILED"; tail -n 40 /tmp/log ;;
  esac
done
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" = 0 ] && [ "$passed" -ge 5 ]
SCRIPT
"$here/bare.sh" run "$folder" bash /opt/try/in.sh || fail "$suite: not all tests passed"
rm -rf "$try"
echo "wheel test: $suite: ok"
