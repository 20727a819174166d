# libposenc_c: the C API in one shared library that exports only the names in posenc_c.h.
option(POSENC_C_API "Build libposenc_c, the C API" ${PROJECT_IS_TOP_LEVEL})
if(NOT POSENC_C_API)
  return()
endif()
file(GLOB c_api_sources CONFIGURE_DEPENDS src/c_api/*.cpp)
add_library(posenc_c_api OBJECT ${c_api_sources})
set_target_properties(posenc_c_api PROPERTIES POSITION_INDEPENDENT_CODE ON)
target_include_directories(posenc_c_api PRIVATE src)
target_link_libraries(posenc_c_api PRIVATE posenc_headers posenc_compile_options fmt::fmt)
optimise(posenc_c_api 2)
compile_together(posenc_c_api 1)

add_library(posenc_c SHARED $<TARGET_OBJECTS:posenc_c_api>)
add_library(posenc::posenc_c ALIAS posenc_c)
set_target_properties(posenc_c PROPERTIES VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR} LINKER_LANGUAGE CXX
                      LINK_DEPENDS ${PROJECT_SOURCE_DIR}/src/c_api/posenc_c.map)
target_include_directories(posenc_c
  INTERFACE $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
target_link_libraries(posenc_c PRIVATE posenc fmt::fmt)
target_link_options(posenc_c PRIVATE LINKER:--version-script=${PROJECT_SOURCE_DIR}/src/c_api/posenc_c.map
                    LINKER:--gc-sections)

# The struct of attention's options in posenc_c.h is generated from AttentionOptions::fields; a test checks that it is
# current.
add_executable(posenc_c_options EXCLUDE_FROM_ALL cmake/c_options.cpp)
target_include_directories(posenc_c_options PRIVATE src)
target_link_libraries(posenc_c_options PRIVATE posenc_headers posenc_compile_options)
add_custom_target(posenc_c_header COMMAND posenc_c_options ${PROJECT_SOURCE_DIR}/include/posenc/posenc_c.h --write VERBATIM)
