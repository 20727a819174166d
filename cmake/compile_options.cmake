# The compile options of every target. Never -march=native or -ffast-math: results must be bit-identical everywhere,
# and SIMD targets are chosen at run time.
# In another project, that project chooses the build type.
if(PROJECT_IS_TOP_LEVEL AND NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "Build type" FORCE)
endif()
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
# CMake takes the compiler's own folders from what it prints, where ccache may have made the path of the sysroot relative.
# As -isystem, its usr/include would precede libstdc++, and <math.h> would be C's, without the isnan that Highway calls.
if(CMAKE_SYSROOT)
  list(APPEND CMAKE_CXX_IMPLICIT_INCLUDE_DIRECTORIES ${CMAKE_SYSROOT}/usr/include)
endif()

foreach(flags CMAKE_CXX_FLAGS CMAKE_CXX_FLAGS_DEBUG CMAKE_CXX_FLAGS_RELEASE CMAKE_CXX_FLAGS_RELWITHDEBINFO)
  if("${${flags}}" MATCHES "-Ofast|-ffast-math|-funsafe-math|-(march|mcpu|mtune)=native")
    message(FATAL_ERROR "${flags} holds ${CMAKE_MATCH_0}: posenc's results would no longer be exact or the same "
                        "everywhere. Take it out.")
  endif()
endforeach()

add_library(posenc_compile_options INTERFACE)
target_compile_options(posenc_compile_options INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wno-sign-conversion -Wnon-virtual-dtor -Wcast-align
  -Woverloaded-virtual -Wdouble-promotion -Wimplicit-fallthrough
  # g++'s guesses about std::variant depend on its version (13 and 14 warn about members that are never read); clang's
  # sanitizers find real errors.
  $<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized>
  # A product and a sum are rounded separately unless the code says fma.
  -ffp-contract=off)
if(POSENC_WARNINGS_AS_ERRORS)
  target_compile_options(posenc_compile_options INTERFACE -Werror)
endif()
# The SIMD targets are listed by name, so that a newer Highway adds none that was not measured. NEON_BF16, SVE and
# AVX3_SPR would take precedence over NEON and AVX3, which have the code for matrix units (docs/decisions/0028).
# SCALAR, or EMU128 with clang, is for processors without any of the others.
set(simd_targets HWY_NEON HWY_SSE4 HWY_AVX2 HWY_AVX3 HWY_SCALAR HWY_EMU128)
if(POSENC_SANITIZE)  # two vector widths; clang needs a quarter of an hour to check emulated vectors
  set(simd_targets HWY_NEON HWY_AVX2 HWY_SCALAR)
elseif(POSENC_ALL_SIMD_TARGETS)  # vectors whose length the compiler does not know
  list(APPEND simd_targets HWY_SVE)
  target_compile_definitions(posenc_compile_options INTERFACE HWY_COMPILE_ALL_ATTAINABLE=1)
endif()
if(POSENC_SANITIZE OR CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  target_compile_definitions(posenc_compile_options INTERFACE HWY_BROKEN_EMU128=1)
endif()
list(JOIN simd_targets "|" simd_targets)
target_compile_definitions(posenc_compile_options INTERFACE "HWY_DISABLED_TARGETS=(~(${simd_targets}))")
if(POSENC_SANITIZE)
  add_compile_options(-fsanitize=${POSENC_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${POSENC_SANITIZE})
endif()
