#!/usr/bin/env bash
# Trains the models of the page "A model" and packs them: explorer/models/train.sh POSENC FOLDER [SCHEME…]
# POSENC is the program; FOLDER keeps the runs and the text. Two models at a time, about ten minutes on two cores.
set -euo pipefail
posenc=$(realpath "$1")
mkdir -p "$2"
folder=$(realpath "$2")
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
shift 2
(($# > 0)) || set -- rope alibi sinusoidal learned none

# Moby Dick, which is free (CC0), in the characters of a keyboard, so that a typed text has no others.
if [[ ! -s $folder/moby-dick.txt ]]; then
  root=$(cd "$here/../.." && pwd)
  say() { echo "$*" >&2; }
  source "$root/cmake/setup.sh"
  fetch_lab_text "$folder/book.txt"
  python3 "$here/plain_text.py" "$folder/book.txt" "$folder/moby-dick.txt"
fi

train() {
  local run=$folder/$1
  "$posenc" lab train --scheme "$1" --text "$folder/moby-dick.txt" --size 64 --width 64 --heads 4 --layers 3 --batch 16 \
    --steps "${STEPS:-2500}" --seed 1 --threads 1 --output "$run" --force --quiet >"$run.log"
  "$posenc" lab pack "$run" --text "$folder/moby-dick.txt" --output "$here/$1.safetensors" --force
}
while (($# > 0)); do
  train "$1" &
  first=$!
  if (($# > 1)); then
    train "$2"
    shift
  fi
  wait "$first"
  shift
done
