# A room is a folder of sources, compiled as a few large units, because a small source spends most of its compile time
# on headers that its neighbours include as well (docs/decisions/0013). Names in anonymous namespaces must therefore
# be unique within a room; the compiler reports conflicts. POSENC_UNITY=OFF compiles every source separately.
option(POSENC_UNITY "Compile the sources of a room together: quicker from nothing" ON)
set(POSENC_ROOM_UNITS "" CACHE STRING "Units of every room, in place of its own number; 1 takes the least time in all")
# Each unit parses its headers again: fewer units need less time in total, more units use more cores. On few cores the
# total counts; on more, each room has its own number, which suits incremental changes as well.
cmake_host_system_information(RESULT cores QUERY NUMBER_OF_LOGICAL_CORES)
if(NOT POSENC_ROOM_UNITS AND cores LESS_EQUAL 4)
  set(POSENC_ROOM_UNITS 1)
endif()

# compile_together(TARGET UNITS): compiles the sources of the target in about UNITS units.
function(compile_together target units)
  if(NOT POSENC_UNITY)
    return()
  endif()
  if(POSENC_ROOM_UNITS)
    set(units ${POSENC_ROOM_UNITS})
  endif()
  get_target_property(sources ${target} SOURCES)
  list(LENGTH sources count)
  math(EXPR size "(${count} + ${units} - 1) / ${units}")
  if(size GREATER 1)
    set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE ${size})
  endif()
endfunction()

# optimise(TARGET LEVEL): `g` for code whose time does not grow with the data (it compiles in a fifth less time than
# -O1), 2 if -O3 shows no measurable gain. With sanitizers, `g` becomes -O0, because such code is compiled more often
# than it runs.
function(optimise target level)
  if(NOT POSENC_SANITIZE)
    target_compile_options(${target} PRIVATE $<$<NOT:$<CONFIG:Debug>>:-O${level}>)
  elseif(level STREQUAL "g")
    target_compile_options(${target} PRIVATE -O0)
  endif()
endfunction()

# add_room(NAME [UNITS n] [OPTIMISE level] [SOURCES …]): the object library posenc_NAME of src/NAME.
function(add_room name)
  cmake_parse_arguments(PARSE_ARGV 1 room "" "UNITS;OPTIMISE" "SOURCES")
  if(NOT room_SOURCES)
    file(GLOB room_SOURCES CONFIGURE_DEPENDS src/${name}/*.cpp)
  endif()
  set(target posenc_${name})
  add_library(${target} OBJECT ${room_SOURCES})
  set_target_properties(${target} PROPERTIES POSITION_INDEPENDENT_CODE ON)
  target_include_directories(${target} PRIVATE src)
  target_link_libraries(${target} PRIVATE posenc_headers posenc_compile_options posenc_header_only fmt::fmt)
  if(room_UNITS)
    compile_together(${target} ${room_UNITS})
  endif()
  if(room_OPTIMISE)
    optimise(${target} ${room_OPTIMISE})
  endif()
  target_sources(posenc PRIVATE $<TARGET_OBJECTS:${target}>)
  set_property(GLOBAL APPEND PROPERTY posenc_rooms ${target})
endfunction()
