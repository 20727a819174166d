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

# Both rooms in four parts each, side by side; then alone, those that take all memory of the GPU.
tests() {
  local folder room part status hungry='*LargerThanFreeMemory'
  local -A running
  folder=$(mktemp -d)
  for room in kernels attention; do
    for part in 0 1 2 3; do
      GTEST_TOTAL_SHARDS=4 GTEST_SHARD_INDEX=$part "$build/tests/${room}_tests" --gtest_filter="-$hungry" \
        >"$folder/$room.$part" 2>&1 &
      running[$room.$part]=$!
    done
  done
  for part in "${!running[@]}"; do
    wait "${running[$part]}"
    status=$?
    ((status == 0)) || { failed=1; grep -v '^\[' "$folder/$part"; echo "FAILED with $status: $part"; }
  done
  for room in kernels attention; do
    "$build/tests/${room}_tests" --gtest_filter="$hungry" >"$folder/$room.hungry" 2>&1 || { failed=1; cat "$folder/$room.hungry"; }
    echo "$room: $(cat "$folder/$room".* | grep -c '^\[       OK') passed, $(cat "$folder/$room".* | grep -c '^\[  SKIPPED \] .*ms)$') skipped"
  done
  # A skipped test says why; on this machine none may be skipped for want of a GPU.
  if grep -h 'cuda cannot run here' "$folder"/*; then failed=1; fi
  grep -h -A1 'Skipped' "$folder"/* | grep -v '^--' | sort -u
  rm -r "$folder"
}

# Side by side. racecheck does not know the barriers that order the copies of attention.
sanitizers() {
  local folder name status
  local -A running
  folder=$(mktemp -d)
  sanitize() {  # NAME TOOL ROOM FILTER
    compute-sanitizer --tool "$2" --error-exitcode 9 "$build/tests/$3_tests" --gtest_brief=1 --gtest_filter="$4" \
      >"$folder/$1" 2>&1 &
    running[$1]=$!
  }
  local of_kernels='Cuda.Sums*:Cuda.Tables*:Cuda.RotatesF16*:Cuda.RotatesByTables*:CudaSlots.AppendsBf16*:CudaSlots.Verbs*:CudaSlotFaults.*'
  sanitize kernels-memcheck memcheck kernels "$of_kernels"
  sanitize kernels-racecheck racecheck kernels "$of_kernels"
  sanitize attention-memcheck memcheck attention \
    'CudaAttentionSm80.Never*:CudaAttentionSm80.Says*:CudaAttention.Rotates*:CudaAttentionBackward.WritesOnly*:CudaAttentionBands.Stay*'
  sanitize pages-memcheck memcheck attention 'CudaAttentionSm80.ReadsA*'
  for name in "${!running[@]}"; do
    wait "${running[$name]}"
    status=$?
    echo "$name: $(tail -n 1 "$folder/$name")"
    ((status == 0)) || { failed=1; cat "$folder/$name"; echo "FAILED with $status: $name"; }
  done
  rm -r "$folder"
}

# A table of 256 MB through --backend cuda and cpu: the same bytes. Attention: within its error, which tests measure.
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
  step "$build/cli/posenc" table sinusoidal --width 128 --positions 0:4096 -o "$folder/f32.npy" --quiet
  for backend in cpu cuda; do
    step "$build/cli/posenc" attend alibi --q "$folder/f32.npy" --k "$folder/f32.npy" --v "$folder/f32.npy" --axes sd --causal \
      --backend "$backend" -o "$folder/f32-$backend.npy" --quiet
  done
  step "$build/cli/posenc" table sinusoidal --width 64 --positions 0:64 --dtype f64 -o "$folder/f64.npy" --quiet
  if "$build/cli/posenc" attend alibi --q "$folder/f64.npy" --k "$folder/f64.npy" --v "$folder/f64.npy" --axes sd \
    --backend cuda -o "$folder/no.npy" --quiet; then
    failed=1
    echo "attention of f64 was not refused"
  fi
  if python3 -c 'import numpy' 2>/dev/null; then
    step python3 "$here/files.py" "$build/cli/posenc" "$folder"
  else
    echo "numpy is not installed: float32 and files larger than the GPU's memory were not tried"
  fi
  rm -r "$folder"
}

all() {
  section "machine"
  nvidia-smi --query-gpu=name,driver_version --format=csv,noheader
  "$build/cli/posenc" list --backends
  section "tests"
  tests
  section "compute-sanitizer"
  if command -v compute-sanitizer >/dev/null; then
    sanitizers
  else
    echo "not installed"
  fi
  section "files"
  files
  section "figures"
  step "$build/benchmarks/posenc_bench" --backend cuda
  section "peers"
  if python3 -c 'import torch' 2>/dev/null; then
    step python3 "$here/../../benchmarks/peers/cuda_attention.py"
    PYTHONPATH=$build/python step python3 "$here/../../benchmarks/peers/cuda_masks.py"
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
