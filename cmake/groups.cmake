# compile_in_groups(TARGET [ALWAYS]): where POSENC_GROUP_SOURCES is on, several sources of the target are compiled as one,
# because every source reads the same headers again (docs/decisions/0013). Only sources that share no name of their own are put
# together, so nothing is asked of whoever writes one. Sources with options of their own are compiled alone.
option(POSENC_GROUP_SOURCES "Compile several sources as one: quicker from nothing, slower after an edit" OFF)

function(compile_in_groups target)
  if(NOT POSENC_GROUP_SOURCES AND NOT "${ARGN}" STREQUAL "ALWAYS")
    return()
  endif()
  find_package(Python3 REQUIRED COMPONENTS Interpreter)
  get_target_property(sources ${target} SOURCES)
  get_target_property(folder ${target} SOURCE_DIR)
  set(paths "")
  foreach(source ${sources})
    cmake_path(ABSOLUTE_PATH source BASE_DIRECTORY ${folder})
    cmake_path(IS_PREFIX PROJECT_BINARY_DIR "${source}" made)
    if(NOT made)
      list(APPEND paths "${source}")
    endif()
  endforeach()
  # An edit may give two sources of a group the same name; the groups are then others.
  set_property(DIRECTORY ${folder} APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${paths})
  execute_process(COMMAND ${Python3_EXECUTABLE} -B ${PROJECT_SOURCE_DIR}/tests/rules/groups.py ${PROJECT_SOURCE_DIR}
                          ${paths}
                  OUTPUT_VARIABLE lines OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
  string(REPLACE "\n" ";" lines "${lines}")
  set(number 0)
  foreach(line ${lines})
    string(REPLACE "|" ";" group "${line}")
    math(EXPR number "${number} + 1")
    set_source_files_properties(${group} DIRECTORY ${folder} PROPERTIES UNITY_GROUP ${number})
  endforeach()
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
endfunction()
