#!/usr/bin/env bash
# subproject_test.sh SOURCE BUILD
# posenc as a part of somebody else's project (add_subdirectory, as docs/guide/embedding.md has it): it leaves the parent's settings and cache alone, and
# brings no program, no tests and no install rules.
set -euo pipefail
source=$1 build=$2
work=$build/subproject-test
rm -rf "$work"
mkdir -p "$work/parent"
cat >"$work/parent/CMakeLists.txt" <<'END'
cmake_minimum_required(VERSION 3.25)
project(parent LANGUAGES CXX)
set(CMAKE_CXX_STANDARD 17)
set(settings CMAKE_CXX_STANDARD CMAKE_BUILD_TYPE CMAKE_CXX_FLAGS BUILD_SHARED_LIBS CMAKE_POSITION_INDEPENDENT_CODE
    CMAKE_RUNTIME_OUTPUT_DIRECTORY CMAKE_CXX_VISIBILITY_PRESET CMAKE_INTERPROCEDURAL_OPTIMIZATION CMAKE_MODULE_PATH
    CMAKE_UNITY_BUILD CMAKE_EXPORT_COMPILE_COMMANDS BUILD_TESTING)
foreach(name IN LISTS settings)
  set(before_${name} "${${name}}")
  set(cached_${name} "$CACHE{${name}}")
endforeach()
get_directory_property(options_before COMPILE_OPTIONS)
get_cmake_property(cache_before CACHE_VARIABLES)
add_subdirectory(${POSENC_SOURCE} posenc)
foreach(name IN LISTS settings)
  if(NOT "${${name}}" STREQUAL "${before_${name}}" OR NOT "$CACHE{${name}}" STREQUAL "${cached_${name}}")
    message(FATAL_ERROR "posenc changed ${name}: '${before_${name}}' is now '${${name}}'")
  endif()
endforeach()
get_directory_property(options_after COMPILE_OPTIONS)
if(NOT "${options_before}" STREQUAL "${options_after}")
  message(FATAL_ERROR "posenc changed the parent's compile options: ${options_after}")
endif()
# New entries are posenc's own, and what CMake's own modules and find_package keep.
get_cmake_property(cache_after CACHE_VARIABLES)
list(REMOVE_ITEM cache_after ${cache_before})
list(FILTER cache_after EXCLUDE REGEX "^_|^POSENC_|^posenc_|_DIR$|^CMAKE_INSTALL_|^CMAKE_PROJECT_VERSION|^prefix_result$|^ZLIB_|^PC_|^FIND_PACKAGE|^pkgcfg_|^PKG_CONFIG|^Threads_|^CMAKE_HAVE_|^HWY_|^LIBHWY|^TBB_|^BOOST|^Boost|_FOUND$|_LIBRARY$|_INCLUDE_DIRS?$")
if(cache_after)
  message(FATAL_ERROR "posenc added to the parent's cache: ${cache_after}")
endif()
foreach(target posenc_cli attention_tests)
  if(TARGET ${target})
    message(FATAL_ERROR "posenc brought ${target} along")
  endif()
endforeach()
if(NOT TARGET posenc::posenc)
  message(FATAL_ERROR "posenc::posenc is missing")
endif()
message(STATUS "the parent is as it was")
END
cmake -S "$work/parent" -B "$work/build" -G Ninja -DPOSENC_SOURCE="$source" >"$work/log" 2>&1 || {
  cat "$work/log" >&2
  exit 1
}
grep -F "the parent is as it was" "$work/log"
! grep -q "cmake_install.*posenc" <(find "$work/build/posenc" -name cmake_install.cmake -exec grep -l 'file(INSTALL' {} +) || {
  echo "install.subproject: posenc made install rules" >&2
  exit 1
}
# Highway: the parent's own target, else its CMake package, else pkg-config.
grep -qE '^(hwy_DIR:PATH=/|HWY_FOUND:INTERNAL=1)' "$work/build/CMakeCache.txt" || {
  echo "install.subproject: Highway was found in neither way" >&2
  exit 1
}
cmake -S "$work/parent" -B "$work/by_pkg_config" -G Ninja -DPOSENC_SOURCE="$source" -DCMAKE_DISABLE_FIND_PACKAGE_hwy=ON >"$work/log" 2>&1 || {
  cat "$work/log" >&2
  exit 1
}
grep -q '^HWY_FOUND:INTERNAL=1' "$work/by_pkg_config/CMakeCache.txt" || {
  echo "install.subproject: without its CMake package, Highway was not found by pkg-config" >&2
  exit 1
}
sed -i 's/^set(settings /add_library(hwy INTERFACE)\nadd_library(hwy::hwy ALIAS hwy)\nset(settings /' "$work/parent/CMakeLists.txt"
cmake -S "$work/parent" -B "$work/by_parent" -G Ninja -DPOSENC_SOURCE="$source" >"$work/log" 2>&1 || {
  cat "$work/log" >&2
  exit 1
}
! grep -qE '^(hwy_DIR:PATH=/|HWY_FOUND:INTERNAL=1)' "$work/by_parent/CMakeCache.txt" || {
  echo "install.subproject: the parent's hwy::hwy was not used" >&2
  exit 1
}
echo "install.subproject: ok"
