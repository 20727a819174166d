#!/usr/bin/env bash
# release_test.sh SOURCE WORK   ./release in a small repository with parts that take no time: what it makes, twice the same; what it
# refuses, in one line; and that nothing half made is left.
set -euo pipefail
source=$1 work=$2
fail() {
  echo "packaging.release: $*" >&2
  exit 1
}
rm -rf "$work"
mkdir -p "$work/tree/include/posenc" "$work/tree/packaging/"{wheel,npm} "$work/bin"
cd "$work/tree"
cp "$source/release" .
cat >include/posenc/version.h <<'TEXT'
#pragma once
#define POSENC_VERSION "3.2.1"
TEXT
printf '# Changelog\n\n## [Unreleased]\n\n## [3.2.1] - 2026-01-02\n- One thing.\n\n## [3.2.0] - 2026-01-01\n\n' >CHANGELOG.md
cat >packaging/wheel/build.sh <<'TEXT'
#!/usr/bin/env bash
[[ -z ${BREAK:-} ]] || { echo half >"$1/half.whl"; echo "wheel: $BREAK" >&2; exit 1; }
echo "$SOURCE_DATE_EPOCH" >"$1/posenc.whl"
TEXT
cp packaging/wheel/build.sh packaging/npm/build.sh
sed -i 's/posenc\.whl/posenc.tgz/' packaging/npm/build.sh
chmod +x packaging/*/build.sh
printf '/build/\n' >.gitignore
git init -q .
git config user.name posenc
git config user.email posenc@example.com
commit() {
  git add -A
  GIT_AUTHOR_DATE='2026-01-02T03:04:05Z' GIT_COMMITTER_DATE='2026-01-02T03:04:05Z' git commit -q -m "$1"
}
commit 'all: first'

# refused TEXT COMMAND…: it fails, and stderr is the one line that has TEXT.
refused() {
  local text=$1 said status=0
  shift
  said=$("$@" 2>&1 >/dev/null) || status=$?
  ((status != 0)) || fail "not refused: $*"
  [[ $said == *"$text"* ]] || fail "expected '$text', got '$said'"
  [[ $said != *$'\n'* ]] || fail "more than one line: $said"
}

# The disk of the machine that runs the tests may be small.
printf '#!/bin/sh\necho Avail; echo ${FREE:-99000000}\n' >"$work/bin/df"
chmod +x "$work/bin/df"
export PATH=$work/bin:$PATH

[[ $(./release --help) == *$'\n./release PART'* ]] || fail "--help does not help"
[[ $(./release --check) == *'3.2.1 can be made'* ]] || fail "--check"
./release >"$work/log" || fail "$(cat "$work/log")"
files=build/release-files
for file in posenc-3.2.1.tar.gz posenc.whl posenc.tgz SHA256SUMS; do [[ -s $files/$file ]] || fail "$file was not made"; done
(cd "$files" && sha256sum --check --quiet SHA256SUMS) || fail "SHA256SUMS is wrong"
[[ $(wc -l <"$files/SHA256SUMS") == 3 ]] || fail "SHA256SUMS has $(cat "$files/SHA256SUMS")"
[[ $(<"$files/posenc.whl") == "$(git log -1 --format=%ct)" ]] || fail "SOURCE_DATE_EPOCH is not the date of the commit"
grep -q 'left out' "$work/log" || fail "a part without a script was not named"
tar -tzf "$files/posenc-3.2.1.tar.gz" >"$work/log"
grep -qx 'posenc-3.2.1/CHANGELOG.md' "$work/log" || fail "the archive has no CHANGELOG.md"
cp "$files/SHA256SUMS" "$work/first"
sleep 1
(umask 077 && ./release >"$work/log") || fail "$(cat "$work/log")"
cmp "$files/SHA256SUMS" "$work/first" || fail "a second run gave other bytes"

# Chosen parts; what a broken part had begun is not there, and old sums do not vouch for new files.
rm -rf "$files"
./release archive sums >/dev/null
[[ $(ls "$files") == $'SHA256SUMS\nposenc-3.2.1.tar.gz' ]] || fail "archive sums made: $(ls "$files")"
refused 'wheel: out of order (the whole log: build/release-work/logs/wheel.log)' env BREAK='out of order' ./release wheel
[[ $(ls -A "$files") == posenc-3.2.1.tar.gz ]] || fail "after a failure there is: $(ls -A "$files")"
refused 'no space left on device' env BREAK='cp: No space left on device' ./release wheel
refused 'out of order' env BREAK='out of order' ./release
[[ $(ls -A "$files") == posenc-3.2.1.tar.gz ]] || fail "a release that failed replaced the last one"

refused 'expected a part (archive wheel deb npm site sums)' ./release wheels
refused 'has 3 GB free, and a release takes' env FREE=3000000 ./release
refused 'cannot be written' env POSENC_RELEASE_FILES=/dev/null/files ./release
echo more >>CHANGELOG.md
refused 'changes that are not committed (CHANGELOG.md' ./release
git checkout -q CHANGELOG.md
touch new.txt
refused 'changes that are not committed (new.txt' ./release
rm new.txt
exec 8>build/release-work/lock
flock 8
refused 'another ./release is running here' ./release
exec 8>&-

# The scripts of the parts, and those that test them.
refused 'unknown release sid; choose from bookworm, trixie' "$source/packaging/deb/build.sh" "$work/out" sid
refused '/dev/null/out cannot be written' "$source/packaging/wheel/build.sh" /dev/null/out
refused 'expected x86_64 or aarch64, got riscv64' "$source/packaging/wheel/build.sh" "$work/out" riscv64
refused 'expected a wheel, got no.whl' "$source/packaging/tests/wheel.sh" no.whl bookworm
refused 'expected a wheel of a release, got no.whl' "$source/packaging/tests/cross_wheel.sh" no.whl
refused 'unknown release sid; choose from bookworm, trixie' "$source/packaging/tests/deb.sh" "$work" sid
if ((EUID == 0)); then
  refused 'unknown release sid; choose from bullseye, bookworm, trixie' "$source/packaging/tests/bare.sh" make sid "$work/bare"
  refused 'there is no Debian in' "$source/packaging/tests/bare.sh" run "$work" true
else
  refused 'root is needed' "$source/packaging/tests/bare.sh" make bookworm "$work/bare"
fi

# A CHANGELOG without a section for the version, or with an empty one.
sed -i 's/3\.2\.1/3.2.0/' include/posenc/version.h
commit 'all: the version of an empty section'
refused 'CHANGELOG.md has no section "## [3.2.0]"' ./release
refused 'CHANGELOG.md has no section "## [3.2.0]"' ./release --trial
sed -i 's/^## \[Unreleased\]$/&\n- Another thing./' CHANGELOG.md
commit 'all: something unreleased'
refused 'CHANGELOG.md has no section "## [3.2.0]"' ./release --check
[[ $(./release --trial --check) == *'3.2.0 can be made'* ]] || fail "--trial"
echo '#pragma once' >include/posenc/version.h
commit 'all: no version'
refused 'include/posenc/version.h has no line' ./release
rm -rf .git
refused 'include/posenc/version.h has no line' ./release
cp "$source/include/posenc/version.h" include/posenc/
refused 'a release is made from a git clone' ./release
echo "packaging.release: ok"
