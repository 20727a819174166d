# posenc::mpi, attention over a sequence that no process holds whole (include/posenc/distributed.h), and the program that
# `mpirun` starts. The library itself stays free of MPI. AUTO: where MPI is installed.
set(POSENC_MPI "OFF" CACHE STRING "Build posenc::mpi and the program for mpirun: ON, OFF, or AUTO where MPI is installed")
if(NOT POSENC_MPI)
  return()
endif()
set(MPI_CXX_SKIP_MPICXX ON)  # the C++ bindings that MPI dropped in 2012
if(POSENC_MPI STREQUAL "AUTO")
  find_package(MPI QUIET COMPONENTS CXX)
else()
  find_package(MPI REQUIRED COMPONENTS CXX)
endif()
if(NOT MPI_CXX_FOUND)
  return()
endif()
file(GLOB mpi_sources CONFIGURE_DEPENDS src/mpi/*.cpp)
add_library(posenc_mpi STATIC ${mpi_sources})
add_library(posenc::mpi ALIAS posenc_mpi)
target_link_libraries(posenc_mpi PUBLIC posenc PRIVATE MPI::MPI_CXX posenc_compile_options fmt::fmt)

# Not part of `all`: mpirun -n 2 posenc_ring_bench
add_executable(posenc_ring_bench EXCLUDE_FROM_ALL benchmarks/ring.cpp)
target_link_libraries(posenc_ring_bench PRIVATE posenc_mpi MPI::MPI_CXX posenc_compile_options)
