#!/usr/bin/env bash
# tests/cuda/on_device.sh BUILD [REPORT]   on a machine with an NVIDIA GPU: runs the tests of kernels and attention of a
# build (build/dev), compute-sanitizer where it is installed, files through --backend cuda, the figures, and, where PyTorch
# is, the Python package on its tensors and the peers; writes one report (standard output, and REPORT where it is named).
# Ends with 1 where anything failed.
set -uo pipefail
build=${1:?"usage: $0 BUILD [REPORT]"}
report=${2:-/dev/null}
here=$(dirname -- "$(readlink -f -- "${BASH_SOURCE[0]}")")
failed=0

section() { printf '\n## %s\n' "$1"; }
# step COMMAND…: its last lines, and whether it failed.
step() {
  local status
  output=$("$@" 2>&1)
  status=$?
  tail -n 60 <<<"$output"
  ((status == 0)) || { failed=1; echo "FAILED with $status: $*"; }
}

# A table of 256 MB through --backend cuda and cpu: the same bytes. 16-bit attention: within its error, which tests measure.
files() {
  local folder
  folder=$(mktemp -d)
  step "$build/cli/posenc" table sinusoidal --width 1024 --positions 0:65536 -o "$folder/x.npy" --quiet
  for backend in cpu cuda; do
    SECONDS=0
    step "$build/cli/posenc" apply rope "$folder/x.npy" -o "$folder/$backend.npy" --axes sd --backend "$backend" --quiet
    echo "apply rope, 256 MB of f32, $backend: $SECONDS s"
  done
  step cmp "$folder/cpu.npy" "$folder/cuda.npy"
  step "$build/cli/posenc" table sinusoidal --width 64 --positions 0:8192 --dtype bf16 -o "$folder/q.npy" --quiet
  step "$build/cli/posenc" attend alibi --q "$folder/q.npy" --k "$folder/q.npy" --v "$folder/q.npy" --axes sd --dtype bf16 \
    --causal --backend cuda -o "$folder/out.npy" --quiet
  if "$build/cli/posenc" attend alibi --q "$folder/x.npy" --k "$folder/x.npy" --v "$folder/x.npy" --axes sd --backend cuda \
    -o "$folder/no.npy" --quiet; then
    failed=1
    echo "attention of f32 was not refused"
  fi
  rm -r "$folder"
}

all() {
  section "machine"
  nvidia-smi --query-gpu=name,driver_version --format=csv,noheader
  "$build/cli/posenc" list --backends
  section "tests"
  for room in kernels attention; do
    # A skipped test says why; on this machine none may be skipped for want of a GPU.
    step "$build/tests/${room}_tests" --gtest_brief=1
    if grep 'cuda cannot run here' <<<"$output"; then failed=1; fi
  done
  section "compute-sanitizer"
  if command -v compute-sanitizer >/dev/null; then
    for tool in memcheck racecheck; do
      step compute-sanitizer --tool "$tool" --error-exitcode 9 "$build/tests/kernels_tests" --gtest_brief=1 \
        --gtest_filter='Cuda.Sums*:Cuda.Tables*:Cuda.RotatesF16*:Cuda.RotatesByTables*'
    done
    # racecheck does not know the barriers that order the copies of attention.
    step compute-sanitizer --tool memcheck --error-exitcode 9 "$build/tests/attention_tests" --gtest_brief=1 \
      --gtest_filter='CudaAttentionAny.Never*:CudaAttentionAny.ReadsA*:CudaAttention.Rotates*:CudaAttentionBackward.WritesOnly*'
  else
    echo "not installed"
  fi
  section "files"
  files
  section "figures"
  step "$build/cli/posenc" bench --backend cuda
  section "peers"
  if python3 -c 'import torch' 2>/dev/null; then
    step python3 "$here/../../benchmarks/peers/cuda_attention.py"
    section "Python"
    for test in cuda torch; do
      PYTHONPATH=$build/python step python3 -B "$here/../../python/tests/${test}_test.py"
    done
  else
    echo "PyTorch is not installed"
  fi
  section "verdict"
  ((failed == 0)) && echo ok || echo FAILED
  return $failed
}

all | tee "$report"
exit "${PIPESTATUS[0]}"
