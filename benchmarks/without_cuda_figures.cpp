// A build without kernels for GPUs has nothing to measure there; `bench --backend cuda` is refused before it asks.
#include "benchmarks/cuda_figures.h"

namespace posenc::figures {

std::vector<CudaFigure> measure_cuda() { return {}; }
std::vector<CudaFigure> measure_decoding() { return {}; }
std::vector<CudaFigure> measure_cuda_attention() { return {}; }

}  // namespace posenc::figures
