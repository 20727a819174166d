#include "kernels/cpu/parallel.h"

#include <oneapi/tbb/blocked_range.h>
#include <oneapi/tbb/info.h>
#include <oneapi/tbb/parallel_for.h>
#include <oneapi/tbb/task_arena.h>

#include <algorithm>

#include "posenc/backend.h"

namespace posenc::kernels::cpu {

int all_cores() noexcept { return oneapi::tbb::info::default_concurrency(); }

void parallel_for(std::int64_t count, std::int64_t grain,
                  const std::function<void(std::int64_t begin, std::int64_t end)>& body) {
  namespace tbb = oneapi::tbb;
  const int workers = threads();
  if (workers <= 1 || count <= grain) {  // starting a pool costs more than the work
    body(0, count);
    return;
  }
  // Pieces a few times more than threads: enough to balance a busy machine, few enough to cost nothing.
  const std::int64_t piece = std::max(grain, count / (workers * 8));
  tbb::task_arena arena(workers);
  arena.execute([&] {
    tbb::parallel_for(
        tbb::blocked_range<std::int64_t>(0, count, static_cast<std::size_t>(piece)),
        [&](const tbb::blocked_range<std::int64_t>& range) { body(range.begin(), range.end()); },
        tbb::simple_partitioner());
  });
}

}  // namespace posenc::kernels::cpu
