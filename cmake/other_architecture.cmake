# A toolchain file for the other architecture, x86-64 on arm64 and arm64 elsewhere: Debian's cross compiler, and the
# libraries that sysroot.sh unpacked into POSENC_SYSROOT. Programs run under qemu. tests/other_architecture/run.sh
# sets it up.
set(CMAKE_SYSTEM_NAME Linux)
if(CMAKE_HOST_SYSTEM_PROCESSOR MATCHES "aarch64|arm64")
  set(CMAKE_SYSTEM_PROCESSOR x86_64)
else()
  set(CMAKE_SYSTEM_PROCESSOR aarch64)
endif()
set(CMAKE_LIBRARY_ARCHITECTURE ${CMAKE_SYSTEM_PROCESSOR}-linux-gnu)
set(CMAKE_C_COMPILER ${CMAKE_LIBRARY_ARCHITECTURE}-gcc)
set(CMAKE_CXX_COMPILER ${CMAKE_LIBRARY_ARCHITECTURE}-g++)
set(CMAKE_SYSROOT ${POSENC_SYSROOT})
list(APPEND CMAKE_TRY_COMPILE_PLATFORM_VARIABLES POSENC_SYSROOT)
set(CMAKE_FIND_ROOT_PATH ${POSENC_SYSROOT})
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
foreach(kind LIBRARY INCLUDE PACKAGE)
  set(CMAKE_FIND_ROOT_PATH_MODE_${kind} ONLY)
endforeach()
set(ENV{PKG_CONFIG_SYSROOT_DIR} ${POSENC_SYSROOT})
set(ENV{PKG_CONFIG_LIBDIR} ${POSENC_SYSROOT}/usr/lib/${CMAKE_LIBRARY_ARCHITECTURE}/pkgconfig:${POSENC_SYSROOT}/usr/share/pkgconfig)
# The processor has every SIMD target that qemu emulates (AVX2 and SVE, but not AVX-512 or AMX).
set(CMAKE_CROSSCOMPILING_EMULATOR qemu-${CMAKE_SYSTEM_PROCESSOR}-static;-cpu;max;-L;${POSENC_SYSROOT})
