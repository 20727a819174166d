#!/usr/bin/env bash
# tests/cuda/on_device.sh BUILD [REPORT]   on a machine with an NVIDIA GPU: runs the tests of kernels and attention of a
# build (build/dev), compute-sanitizer where it is installed, the figures, and the peers where PyTorch is; writes one
# report (standard output, and REPORT where it is named). Ends with 1 where anything failed.
set -uo pipefail
build=${1:?"usage: $0 BUILD [REPORT]"}
report=${2:-/dev/null}
here=$(dirname -- "$(readlink -f -- "${BASH_SOURCE[0]}")")
failed=0

section() { printf '\n## %s\n' "$1"; }
# step COMMAND…: its last lines, and whether it failed.
step() {
  local output status
  output=$("$@" 2>&1)
  status=$?
  tail -n 60 <<<"$output"
  ((status == 0)) || { failed=1; echo "FAILED with $status: $*"; }
}

all() {
  section "machine"
  nvidia-smi --query-gpu=name,driver_version --format=csv,noheader
  "$build/cli/posenc" list --backends
  section "tests"
  for room in kernels attention; do
    # A skipped test says why; on this machine none may be skipped for want of a GPU.
    step "$build/tests/${room}_tests" --gtest_brief=1
    if "$build/tests/${room}_tests" --gtest_brief=1 --gtest_filter='Cuda*' 2>&1 | grep 'cuda cannot run here'; then failed=1; fi
  done
  section "compute-sanitizer"
  if command -v compute-sanitizer >/dev/null; then
    for tool in memcheck racecheck; do
      step compute-sanitizer --tool "$tool" --error-exitcode 9 "$build/tests/kernels_tests" --gtest_brief=1 \
        --gtest_filter='Cuda.Sums*:Cuda.Tables*:Cuda.RotatesF16*:Cuda.RotatesByTables*'
    done
    # racecheck does not know the barriers that order the copies of attention.
    step compute-sanitizer --tool memcheck --error-exitcode 9 "$build/tests/attention_tests" --gtest_brief=1 \
      --gtest_filter='CudaAttentionAny.Never*:CudaAttentionBackward.WritesOnly*'
  else
    echo "not installed"
  fi
  section "figures"
  step "$build/cli/posenc" bench --backend cuda
  section "peers"
  if python3 -c 'import torch' 2>/dev/null; then
    step python3 "$here/../../benchmarks/peers/cuda_attention.py"
  else
    echo "PyTorch is not installed"
  fi
  section "verdict"
  ((failed == 0)) && echo ok || echo FAILED
  return $failed
}

all | tee "$report"
exit "${PIPESTATUS[0]}"
