# Kernels for NVIDIA GPUs. clang compiles them to PTX, which the library contains as text and the driver compiles when
# a kernel is first used (docs/decisions/0015). Building needs nothing from NVIDIA, and nothing is linked.
# They take minutes to compile, so AUTO builds them only for tests, or if a driver is installed.
set(POSENC_CUDA AUTO CACHE STRING
    "Build the kernels for NVIDIA's GPUs: ON, OFF, or AUTO (where clang++-22 and NVIDIA's driver are found; for tests, where clang++-22 is)")
set_property(CACHE POSENC_CUDA PROPERTY STRINGS AUTO ON OFF)
set(POSENC_CUDA_CASES ALL CACHE STRING
    "Types, sizes and layouts for which each of these kernels is compiled: ALL, or FIRST, one of them where there is no driver")
set_property(CACHE POSENC_CUDA_CASES PROPERTY STRINGS ALL FIRST)
set(cuda_sources "")
if(NOT POSENC_CUDA)
  return()
endif()
# Looks for libcuda.so.1 as setup.sh does. ldconfig may be in root's PATH only, but anyone may run it.
function(find_cuda_driver found)
  find_program(POSENC_LDCONFIG ldconfig PATHS /usr/sbin /sbin)
  mark_as_advanced(POSENC_LDCONFIG)
  set(libraries "")
  if(POSENC_LDCONFIG)
    execute_process(COMMAND ${POSENC_LDCONFIG} -p OUTPUT_VARIABLE libraries ERROR_QUIET)
  endif()
  string(FIND "${libraries}" "libcuda.so.1" at)
  if(at GREATER -1)
    set(${found} TRUE PARENT_SCOPE)
  else()
    set(${found} FALSE PARENT_SCOPE)
  endif()
endfunction()
find_cuda_driver(has_driver)
if(POSENC_CUDA STREQUAL "AUTO" AND NOT POSENC_BUILD_TESTS)
  if(NOT has_driver)
    message(STATUS "No driver of NVIDIA's (libcuda.so.1), so no kernels for its GPUs; -DPOSENC_CUDA=ON builds them")
    return()
  endif()
endif()
find_program(POSENC_CUDA_CLANG clang++-22 DOC "The compiler of the kernels for NVIDIA's GPUs")
if(NOT POSENC_CUDA_CLANG)
  if(POSENC_CUDA STREQUAL "ON")
    message(FATAL_ERROR "POSENC_CUDA is ON, but there is no clang++-22 (Debian's package clang-22)")
  endif()
  message(STATUS "No clang++-22, so no kernels for NVIDIA's GPUs")
  return()
endif()

set(ptx_folder ${PROJECT_BINARY_DIR}/ptx)
file(MAKE_DIRECTORY ${ptx_folder})
# A build that tests only the host code (`asan`) uses the kernels that `dev` has compiled, if it has.
set(POSENC_PTX_FROM "" CACHE PATH "A folder of kernels that another build has compiled, to take in place of compiling them")
set(ptx_entries "")
set(ptx_kernels "")

# add_kernel(NAME SOURCE ARCHITECTURE [DEFINITION…]): one module with the kernel in src/SOURCE.cu, which is named like
# the file. sm_80 also runs on all newer GPUs; sm_90a runs only on compute capability 9.0.
function(add_kernel name source architecture)
  set(ptx ${ptx_folder}/${name}.ptx)
  cmake_path(GET source FILENAME kernel)
  if(POSENC_CUDA_CASES STREQUAL "FIRST" AND NOT has_driver AND kernel IN_LIST ptx_kernels)
    return()
  endif()
  set(is_there FALSE)
  if(POSENC_PTX_FROM AND EXISTS ${POSENC_PTX_FROM}/${name}.ptx)
    set(ptx ${POSENC_PTX_FROM}/${name}.ptx)
    set(is_there TRUE)
  endif()
  list(TRANSFORM ARGN PREPEND -D OUTPUT_VARIABLE definitions)
  set(warnings -Wall -Wextra -Wshadow -Wconversion -Wno-sign-conversion -Wno-missing-field-initializers
      -Wno-bitwise-instead-of-logical
      -Wno-unknown-cuda-version)
  if(POSENC_WARNINGS_AS_ERRORS)
    list(APPEND warnings -Werror)
  endif()
  if(NOT is_there)
    add_custom_command(
      OUTPUT ${ptx}
      COMMAND ${POSENC_CUDA_CLANG} -std=c++20 -O3 -ffp-contract=off -x cuda --cuda-device-only -nocudainc -nocudalib
              --cuda-gpu-arch=${architecture} --cuda-feature=+ptx81 ${warnings} ${definitions}
              -I${PROJECT_SOURCE_DIR}/src -I${PROJECT_SOURCE_DIR}/include -MD -MF ${ptx}.d -MT ${ptx}
              -S ${PROJECT_SOURCE_DIR}/src/${source}.cu -o ${ptx}
      DEPENDS ${PROJECT_SOURCE_DIR}/src/${source}.cu DEPFILE ${ptx}.d
      COMMENT "Compiling ${name} to PTX" VERBATIM)
  endif()
  # The variants of one kernel are packed together.
  list(APPEND pack_of_${kernel} ${ptx})
  list(LENGTH pack_of_${kernel} number)
  math(EXPR number "${number} - 1")
  list(APPEND ptx_kernels ${kernel})
  list(REMOVE_DUPLICATES ptx_kernels)
  string(APPEND ptx_entries "    {\"${name}\", \"${kernel}\", {posenc_ptx_${kernel}, size_of_${kernel}()}, ${number}},\n")
  set(ptx_entries "${ptx_entries}" PARENT_SCOPE)
  set(ptx_kernels ${ptx_kernels} PARENT_SCOPE)
  set(pack_of_${kernel} ${pack_of_${kernel}} PARENT_SCOPE)
endfunction()

include(${PROJECT_SOURCE_DIR}/src/kernels/cuda/kernels.cmake)

add_executable(posenc_pack_ptx ${PROJECT_SOURCE_DIR}/cmake/pack_ptx.cpp)
target_compile_features(posenc_pack_ptx PRIVATE cxx_std_20)
target_link_libraries(posenc_pack_ptx PRIVATE ZLIB::ZLIB)
set(ptx_declarations "")
set(ptx_packs "")
foreach(kernel ${ptx_kernels})
  set(pack ${ptx_folder}/${kernel}.pack)
  add_custom_command(OUTPUT ${pack} COMMAND posenc_pack_ptx ${pack} ${pack_of_${kernel}}
                     DEPENDS posenc_pack_ptx ${pack_of_${kernel}} COMMENT "Packing ${kernel}" VERBATIM)
  set(symbol posenc_ptx_${kernel})
  # Hidden, so that other libraries do not see it.
  string(APPEND ptx_declarations
         "__asm__(\".section .rodata\\n.globl ${symbol}\\n.hidden ${symbol}\\n${symbol}:\\n\"\n"
         "        \".incbin \\\"${pack}\\\"\\n.globl ${symbol}_end\\n.hidden ${symbol}_end\\n${symbol}_end:\\n.text\\n\");\n"
         "extern \"C\" __attribute__((visibility(\"hidden\"))) const char ${symbol}[], ${symbol}_end[];\n"
         "static std::size_t size_of_${kernel}() { return static_cast<std::size_t>(${symbol}_end - ${symbol}); }\n")
  list(APPEND ptx_packs ${pack})
endforeach()

set(ptx_code "// Made by cmake/cuda.cmake.\n#include \"kernels/cuda/module.h\"\n\n${ptx_declarations}\n")
string(APPEND ptx_code "namespace posenc::kernels::cuda {\nstd::span<const PtxModule> ptx_modules() {\n"
       "  static const PtxModule modules[] = {\n${ptx_entries}  };\n  return modules;\n}\n"
       "}  // namespace posenc::kernels::cuda\n")
file(WRITE ${ptx_folder}/modules.cpp.new "${ptx_code}")
file(COPY_FILE ${ptx_folder}/modules.cpp.new ${ptx_folder}/modules.cpp ONLY_IF_DIFFERENT)
set_source_files_properties(${ptx_folder}/modules.cpp PROPERTIES OBJECT_DEPENDS "${ptx_packs}"
                            SKIP_UNITY_BUILD_INCLUSION ON)
file(GLOB cuda_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/kernels/cuda/*.cpp
     ${PROJECT_SOURCE_DIR}/src/attention/cuda/*.cpp)
