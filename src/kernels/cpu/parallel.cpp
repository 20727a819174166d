#include "kernels/cpu/parallel.h"

#include <oneapi/tbb/blocked_range.h>
#include <oneapi/tbb/global_control.h>
#include <oneapi/tbb/info.h>
#include <oneapi/tbb/parallel_for.h>
#include <oneapi/tbb/task_arena.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <optional>
#include <thread>

#include "kernels/job.h"
#include "kernels/memory.h"
#include "posenc/backend.h"

namespace posenc::kernels::cpu {
namespace {

// The workspace of a call, in equal parts: each piece takes one that is free. There are as many as threads, so one is
// always free, or soon is if the caller's pool has more threads.
class WorkspaceParts {
 public:
  WorkspaceParts(const Arena* whole, int workers) : workers_(workers) {
    if (whole == nullptr) return;
    rest_ = whole->rest();
    size_ = rest_.size() / workers_;
  }
  bool has_any() const noexcept { return !rest_.empty(); }
  /// Holds one of them while it lives.
  class Part {
   public:
    explicit Part(WorkspaceParts& parts) noexcept
        : parts_(parts), index_(parts.take()), arena_(parts.memory(index_)) {}
    ~Part() { parts_.taken_[index_].store(false, std::memory_order_release); }
    Part(const Part&) = delete;
    Part& operator=(const Part&) = delete;
    Arena& arena() noexcept { return arena_; }

   private:
    WorkspaceParts& parts_;
    std::size_t index_;
    Arena arena_;
  };

 private:
  std::size_t take() noexcept {
    for (std::size_t part = 0;; part = (part + 1) % workers_) {
      if (!taken_[part].exchange(true, std::memory_order_acquire)) return part;
      if (part + 1 == workers_) std::this_thread::yield();
    }
  }
  std::span<std::byte> memory(std::size_t part) const noexcept { return rest_.subspan(part * size_, size_); }

  std::size_t workers_, size_ = 0;
  std::span<std::byte> rest_;
  std::array<std::atomic<bool>, kMostThreads> taken_ = {};
};

struct Pieces {
  std::int64_t count, piece;
  const PieceBody& body;
  WorkspaceParts& parts;

  void run(std::int64_t begin) const {
    const std::int64_t end = std::min(begin + piece, count);
    if (!parts.has_any()) {
      const UseArena none(nullptr);
      body.call(body.object, begin, end);
      return;
    }
    WorkspaceParts::Part own(parts);
    const UseArena use(&own.arena());
    body.call(body.object, begin, end);
  }
};

// Created once for each calling thread: creating one costs microseconds and memory.
oneapi::tbb::task_arena& arena_of(int workers) {
  thread_local std::optional<oneapi::tbb::task_arena> arena;
  thread_local int size = 0;
  if (size != workers) {
    // TBB has no more threads than this, and complains on stderr if asked for more.
    using oneapi::tbb::global_control;
    const std::size_t most = global_control::active_value(global_control::max_allowed_parallelism);
    arena.emplace(static_cast<int>(std::min(static_cast<std::size_t>(workers), most)));
    size = workers;
  }
  return *arena;
}

}  // namespace

int all_cores() noexcept { return oneapi::tbb::info::default_concurrency(); }

void parallel_pieces(std::int64_t count, std::int64_t grain, const PieceBody& body) {
  namespace tbb = oneapi::tbb;
  if (CountMemory* const counter = counter_in_use()) {
    CountMemory piece;
    body.call(body.object, 0, count);
    counter->piece = std::max(counter->piece, piece.shared + piece.piece);
    return;
  }
  const int workers = threads();
  if (workers <= 1 || count <= grain) {  // starting a pool costs more than the work
    const UseRest use;
    body.call(body.object, 0, count);
    return;
  }
  // A few times more pieces than threads: enough to balance the load on a busy machine, few enough to cost nothing.
  const std::int64_t piece = std::max(grain, count / (workers * 8)), all = (count + piece - 1) / piece;
  WorkspaceParts parts(arena_in_use(), workers);
  const Pieces pieces{count, piece, body, parts};
  if (const Pool& pool = pool_of_call(); pool.run != nullptr) {
    const auto item = [](void* data, std::int64_t i) {
      const auto& all_pieces = *static_cast<const Pieces*>(data);
      all_pieces.run(i * all_pieces.piece);
    };
    pool.run(pool.context, all, item, const_cast<Pieces*>(&pieces));
    return;
  }
  arena_of(workers).execute([&] {
    tbb::parallel_for(
        tbb::blocked_range<std::int64_t>(0, all, 1),
        [&](const tbb::blocked_range<std::int64_t>& range) {
          for (std::int64_t i = range.begin(); i < range.end(); ++i) pieces.run(i * piece);
        },
        tbb::simple_partitioner());
  });
}

}  // namespace posenc::kernels::cpu
