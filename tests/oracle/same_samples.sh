#!/usr/bin/env bash
# same_samples.sh HERE THERE…: the program exact_samples of this architecture, and the command that runs that of another
# one, write the same 1,000 lines.
set -euo pipefail
here=$1
shift
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$here" >"$work/here"
"$@" >"$work/there"
count=$(wc -l <"$work/here")
((count == 1000)) || { echo "same_samples: expected 1000 samples, got $count" >&2; exit 1; }
if ! cmp -s "$work/here" "$work/there"; then
  echo "same_samples: the architectures differ, first in this line:" >&2
  diff "$work/here" "$work/there" | sed -n '1,4p' >&2
  exit 1
fi
echo "same_samples: 1000 samples have the same bytes"
