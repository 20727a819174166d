# How every target of the project is compiled. Never -march=native, never -ffast-math: results must be the same
# bytes everywhere, and dispatch happens at run time.
# As a part of another project, that one decides.
if(PROJECT_IS_TOP_LEVEL AND NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "Build type" FORCE)
endif()
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

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
  # What g++ guesses about std::variant changes with its version (13 and 14 warn of members that are never read); clang's
  # sanitizers see what is real.
  $<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized>
  # a product and a sum stay two roundings unless the code says fma
  -ffp-contract=off)
if(POSENC_WARNINGS_AS_ERRORS)
  target_compile_options(posenc_compile_options INTERFACE -Werror)
endif()
if(POSENC_SANITIZE)
  add_compile_options(-fsanitize=${POSENC_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${POSENC_SANITIZE})
endif()
