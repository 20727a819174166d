#!/usr/bin/env bash
# tests/fuzz/run.sh SECONDS [FORMAT…]   fuzzes each reader for so many seconds with AddressSanitizer and
#                                       UndefinedBehaviorSanitizer, and prints how many inputs it saw.
# A crash, a hang of 2 s, 256 MB in use or 64 MB at once ends with status 1; the input is in build/fuzz/found. What was
# learnt stays in build/fuzz/corpus for the next time; tests/fuzz/corpus is where it begins.
set -euo pipefail
here=$(dirname -- "$(readlink -f -- "${BASH_SOURCE[0]}")")
root=$(dirname -- "$(dirname -- "$here")")
build=$root/build/fuzz
seconds=${1:?usage: tests/fuzz/run.sh SECONDS [FORMAT…]}
shift
formats=("$@")
((${#formats[@]})) || formats=(npy npz safetensors gguf json model)

mkdir -p "$build/found"
{
  cmake -S "$root" -B "$build" -G Ninja -DCMAKE_TOOLCHAIN_FILE="$root/cmake/clang.cmake" -DCMAKE_BUILD_TYPE=RelWithDebInfo \
    -DPOSENC_SANITIZE=fuzzer-no-link,address,undefined -DPOSENC_CPU_BACKEND=OFF -DPOSENC_BUILD_CLI=OFF \
    -DPOSENC_BUILD_TESTS=ON -DPOSENC_FUZZ=ON
  cmake --build "$build" --target "${formats[@]/#/fuzz_}"
} >"$build/build.log" 2>&1 || {
  cat "$build/build.log" >&2
  exit 1
}

# Freed memory that AddressSanitizer holds back must not count as ours.
export ASAN_OPTIONS=quarantine_size_mb=16:${ASAN_OPTIONS:-}
status=0
for format in "${formats[@]}"; do
  mkdir -p "$build/corpus/$format"
  log=$build/$format.log
  # words that an input of this kind is made of, one in a line
  words=()
  [[ -f $here/$format.dict ]] && words=(-dict="$here/$format.dict")
  if "$build/tests/fuzz/fuzz_$format" -max_total_time="$seconds" -rss_limit_mb=256 -timeout=2 -malloc_limit_mb=64 \
    -print_final_stats=1 "${words[@]}" -artifact_prefix="$build/found/$format-" "$build/corpus/$format" "$here/corpus/$format" \
    >"$log" 2>&1; then
    verdict=ok
  else
    verdict="FAILED, see ${log#"$root"/}"
    status=1
  fi
  executions=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")
  printf '%-12s %12s executions   %s\n' "$format" "${executions:-0}" "$verdict"
done
exit $status
