# posenc::lessons: stories, questions, exercises and cards (include/posenc/lessons.h), and the content that they are
# made from. It is a separate library, so that programs that only compute do not link it (docs/decisions/0025).
option(POSENC_LESSONS "Build posenc::lessons, which the program and the tests need" ${PROJECT_IS_TOP_LEVEL})
if(NOT POSENC_LESSONS AND NOT POSENC_BUILD_CLI AND NOT POSENC_BUILD_TESTS)
  return()
endif()
include(cmake/content.cmake)
file(GLOB lessons_sources CONFIGURE_DEPENDS src/lessons/*.cpp)
add_library(posenc_lessons ${lessons_sources} ${content_source})
add_library(posenc::lessons ALIAS posenc_lessons)
set_target_properties(posenc_lessons PROPERTIES EXPORT_NAME lessons VERSION ${PROJECT_VERSION}
                      SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR} POSITION_INDEPENDENT_CODE ON)
target_include_directories(posenc_lessons PRIVATE src)
target_link_libraries(posenc_lessons PUBLIC posenc
                      PRIVATE posenc_compile_options $<BUILD_INTERFACE:posenc_header_only> fmt::fmt)
optimise(posenc_lessons g)
set_source_files_properties(${content_source} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
compile_together(posenc_lessons 2)
show_own_names(posenc_lessons)
set_property(GLOBAL APPEND PROPERTY posenc_rooms posenc_lessons)
