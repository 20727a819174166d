# What the machine can do at most, for `posenc bench`.
include_guard(GLOBAL)
find_package(Threads REQUIRED)
add_library(posenc_limits STATIC ${CMAKE_CURRENT_LIST_DIR}/limits.cpp ${CMAKE_CURRENT_LIST_DIR}/loops.cpp
            ${CMAKE_CURRENT_LIST_DIR}/sgemm.cpp)
# What a GPU does beside its own limits, for `posenc bench --backend cuda`.
set(cuda_figures without_cuda_figures.cpp)
if(cuda_sources)
  set(cuda_figures cuda_figures.cpp cuda_attention_figures.cpp)
endif()
list(TRANSFORM cuda_figures PREPEND ${CMAKE_CURRENT_LIST_DIR}/)
add_library(posenc_cuda_figures STATIC ${CMAKE_CURRENT_LIST_DIR}/cuda_figures.h ${cuda_figures})
target_link_libraries(posenc_cuda_figures PRIVATE posenc posenc_compile_options)
target_include_directories(posenc_cuda_figures PUBLIC ${PROJECT_SOURCE_DIR})
target_compile_features(posenc_limits PUBLIC cxx_std_20)
target_include_directories(posenc_limits PUBLIC ${PROJECT_SOURCE_DIR})
target_link_libraries(posenc_limits PRIVATE posenc_compile_options hwy::hwy Threads::Threads ${CMAKE_DL_LIBS})
# the limit of a machine does not depend on how the rest is built
target_compile_options(posenc_limits PRIVATE -O3)
