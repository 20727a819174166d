#!/usr/bin/env bash
# Run by rattler-build in a copy of the sources: builds the library, the C API and the program, and installs them into the
# environment of the package.
set -euo pipefail
cmake -S . -B build/conda -G Ninja ${CMAKE_ARGS:-} \
  -DCMAKE_BUILD_TYPE=Release \
  -DCMAKE_INSTALL_PREFIX="$PREFIX" \
  -DCMAKE_INSTALL_LIBDIR=lib \
  -DBUILD_SHARED_LIBS=ON \
  -DPOSENC_INSTALL=ON \
  -DPOSENC_BUILD_TESTS=OFF \
  -DPOSENC_BUILD_PYTHON=OFF \
  -DPOSENC_EXPLORER=OFF \
  -DPOSENC_CUDA=OFF
cmake --build build/conda --parallel "${CPU_COUNT:-2}"
cmake --install build/conda
