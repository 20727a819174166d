# Kernels for NVIDIA's GPUs: clang compiles them to PTX, which the library holds as text and the GPU's driver takes when a
# kernel is first used (docs/decisions/0015). Nothing of NVIDIA's is needed to build, and nothing is linked.
# AUTO builds them where clang is found.
set(POSENC_CUDA AUTO CACHE STRING "Build the kernels for NVIDIA's GPUs: ON, OFF, or AUTO (where clang++-22 is found)")
set_property(CACHE POSENC_CUDA PROPERTY STRINGS AUTO ON OFF)
set(cuda_sources "")
if(NOT POSENC_CUDA)
  return()
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
# A build that only tests the host's side (`asan`) takes the kernels that `dev` has compiled, where it has.
set(POSENC_PTX_FROM "" CACHE PATH "A folder of kernels that another build has compiled, to take in place of compiling them")
set(ptx_declarations "")
set(ptx_entries "")
set(ptx_files "")

# add_kernel(NAME SOURCE ARCHITECTURE [DEFINITION…]): one module with the one kernel of src/SOURCE.cu, which has the file's
# name. sm_80 serves every newer chip too; sm_90a is for compute capability 9.0 alone.
function(add_kernel name source architecture)
  set(ptx ${ptx_folder}/${name}.ptx)
  cmake_path(GET source FILENAME kernel)
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
  set(symbol posenc_ptx_${name})
  # Hidden: other libraries need not see it.
  string(APPEND ptx_declarations
         "__asm__(\".section .rodata\\n.globl ${symbol}\\n.hidden ${symbol}\\n${symbol}:\\n\"\n"
         "        \".incbin \\\"${ptx}\\\"\\n.byte 0\\n.text\\n\");\n"
         "extern \"C\" __attribute__((visibility(\"hidden\"))) const char ${symbol}[];\n")
  string(APPEND ptx_entries "    {\"${name}\", \"${kernel}\", ${symbol}},\n")
  set(ptx_declarations "${ptx_declarations}" PARENT_SCOPE)
  set(ptx_entries "${ptx_entries}" PARENT_SCOPE)
  set(ptx_files ${ptx_files} ${ptx} PARENT_SCOPE)
endfunction()

include(${PROJECT_SOURCE_DIR}/src/kernels/cuda/kernels.cmake)

set(ptx_code "// Made by cmake/cuda.cmake.\n#include \"kernels/cuda/module.h\"\n\n${ptx_declarations}\n")
string(APPEND ptx_code "namespace posenc::kernels::cuda {\nnamespace {\nconst PtxModule kModules[] = {\n${ptx_entries}};\n"
       "}  // namespace\nstd::span<const PtxModule> ptx_modules() { return kModules; }\n"
       "}  // namespace posenc::kernels::cuda\n")
file(WRITE ${ptx_folder}/modules.cpp.new "${ptx_code}")
file(COPY_FILE ${ptx_folder}/modules.cpp.new ${ptx_folder}/modules.cpp ONLY_IF_DIFFERENT)
set_source_files_properties(${ptx_folder}/modules.cpp PROPERTIES OBJECT_DEPENDS "${ptx_files}"
                            SKIP_UNITY_BUILD_INCLUSION ON)
file(GLOB cuda_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/kernels/cuda/*.cpp
     ${PROJECT_SOURCE_DIR}/src/attention/cuda/*.cpp)
