#!/usr/bin/env bash
# Compares the bytes of every published table with tables.sha256, on every backend and SIMD target that runs here.
#   check_tables.sh TABLE_BYTES [RUNNER…]     RUNNER… in front of the program, e.g. an emulator
#   check_tables.sh --print TABLE_BYTES       prints the sums instead, by the reference backend
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)

if [[ $1 == --print ]]; then
  for name in $("$2"); do
    printf '%s  %s\n' "$("$2" "$name" reference | sha256sum | cut -d' ' -f1)" "$name"
  done
  exit
fi

program=$1
shift
runner=("$@")
targets=$("${runner[@]}" "$program" --targets)
engines=("reference")
for target in $targets; do engines+=("cpu $target"); done

checked=0
while read -r want name; do
  for engine in "${engines[@]}"; do
    # shellcheck disable=SC2086  # backend and target are two words
    got=$("${runner[@]}" "$program" "$name" $engine | sha256sum | cut -d' ' -f1)
    if [[ $got != "$want" ]]; then
      echo "check_tables: $name on $engine is $got, published is $want" >&2
      exit 1
    fi
    checked=$((checked + 1))
  done
done <"$here/tables.sha256"
[[ $checked -ge 20 ]] || { echo "check_tables: only $checked tables were checked" >&2; exit 1; }
echo "check_tables: $checked tables have the published bytes (${engines[*]})"
