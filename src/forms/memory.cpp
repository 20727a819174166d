#include "forms/memory.h"

#include <algorithm>
#include <array>
#include <new>
#include <utility>

namespace posenc {
namespace {

constexpr std::size_t kLineBytes = 64;

// Without threads and vectors, any memory is suitable.
#if POSENC_CPU_BACKEND
constexpr std::align_val_t kLine{kLineBytes};
constexpr std::size_t kLargestKept = 1 << 20, kMostKept = 8 << 20;

struct KeptBlock {
  void* place = nullptr;
  std::size_t bytes = 0;
};

// The blocks that a thread has given back, in that order. What another job left goes first, so that the second call of a
// job finds what its first gave back.
class KeptBlocks {
 public:
  KeptBlocks() = default;
  ~KeptBlocks() {
    while (count_ > 0) free_oldest();
  }
  KeptBlocks(const KeptBlocks&) = delete;
  KeptBlocks& operator=(const KeptBlocks&) = delete;

  // Null where there is none of this size.
  void* take(std::size_t bytes) noexcept {
    for (std::size_t i = count_; i-- > 0;) {
      if (blocks_[i].bytes == bytes) return remove(i);
    }
    return nullptr;
  }
  void keep(void* place, std::size_t bytes) noexcept {
    while (count_ == blocks_.size() || bytes_ + bytes > kMostKept) free_oldest();
    blocks_[count_++] = {place, bytes};
    bytes_ += bytes;
  }

 private:
  void* remove(std::size_t i) noexcept {
    const KeptBlock block = blocks_[i];
    std::copy(blocks_.begin() + i + 1, blocks_.begin() + count_, blocks_.begin() + i);
    --count_;
    bytes_ -= block.bytes;
    return block.place;
  }
  void free_oldest() noexcept { ::operator delete(remove(0), kLine); }

  std::array<KeptBlock, 48> blocks_;
  std::size_t count_ = 0, bytes_ = 0;
};
thread_local KeptBlocks blocks_kept;
#endif
thread_local Arena* arena = nullptr;
thread_local CountMemory* counter = nullptr;

constexpr std::size_t in_lines(std::size_t bytes) { return (bytes + kLineBytes - 1) / kLineBytes * kLineBytes; }

}  // namespace

Arena::Arena(std::span<std::byte> memory) {
  const auto address = reinterpret_cast<std::uintptr_t>(memory.data());
  const std::size_t skipped = std::min(memory.size(), in_lines(address) - address);
  begin_ = next_ = memory.data() + skipped;
  end_ = memory.data() + memory.size();
}

void* Arena::take(std::size_t bytes) noexcept {
  if (in_lines(bytes) > static_cast<std::size_t>(end_ - next_)) return nullptr;
  return std::exchange(next_, next_ + in_lines(bytes));
}

bool Arena::give(void* place, std::size_t bytes) noexcept {
  auto* const start = static_cast<std::byte*>(place);
  if (start < begin_ || start >= end_) return false;
  if (start + in_lines(bytes) == next_) next_ = start;
  return true;
}

UseArena::UseArena(Arena* used) noexcept : before_(std::exchange(arena, used)) {}
UseArena::~UseArena() { arena = before_; }
Arena* arena_in_use() noexcept { return arena; }

CountMemory::CountMemory() noexcept : before_(std::exchange(counter, this)) {}
CountMemory::~CountMemory() { counter = before_; }
CountMemory* counter_in_use() noexcept { return counter; }

void* take_lines(std::size_t bytes) {
  if (counter != nullptr) counter->shared += in_lines(bytes);
  if (arena != nullptr) {
    if (void* const place = arena->take(bytes)) return place;
  }
#if POSENC_CPU_BACKEND
  if (void* const place = blocks_kept.take(bytes)) return place;
  return ::operator new(bytes, kLine);
#else
  return ::operator new(bytes);
#endif
}

void give_lines(void* place, std::size_t bytes) noexcept {
  if (arena != nullptr && arena->give(place, bytes)) return;
#if POSENC_CPU_BACKEND
  if (bytes <= kLargestKept) {
    blocks_kept.keep(place, bytes);
  } else {
    ::operator delete(place, kLine);
  }
#else
  ::operator delete(place);
#endif
}

}  // namespace posenc
