# A room is a folder of sources, compiled as a few large units: most of the time of a small source goes into headers that
# its neighbours read too (docs/decisions/0013). Names that a source keeps to itself are therefore unique within its room;
# the compiler says where they are not. POSENC_UNITY=OFF compiles every source alone.
option(POSENC_UNITY "Compile the sources of a room together: quicker from nothing" ON)
set(POSENC_ROOM_UNITS "" CACHE STRING "Units of every room, in place of its own number; 1 takes the least time in all")
# A unit reads its headers anew, so fewer units cost less in all, and more keep more cores busy. A release build is made
# from nothing on the cores there are; the other builds have a room's own number, for what changes while one works.
cmake_host_system_information(RESULT cores QUERY NUMBER_OF_LOGICAL_CORES)
if(NOT POSENC_ROOM_UNITS AND CMAKE_BUILD_TYPE STREQUAL "Release" AND cores LESS_EQUAL 4)
  set(POSENC_ROOM_UNITS 1)
endif()

# compile_together(TARGET UNITS): compiles the sources of the target in about UNITS pieces.
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

# optimise(TARGET LEVEL): `g` where nothing grows with the data (a fifth less to compile than -O1), 2 where a compiler's
# last effort shows in no figure. With sanitizers, what is compiled with -Og is not optimised at all: it is compiled more
# often than it runs.
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
