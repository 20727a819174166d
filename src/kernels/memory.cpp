#include "kernels/memory.h"

#include <algorithm>
#include <array>
#include <new>
#include <utility>

namespace posenc::kernels {
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
struct KeptBlocks {
  std::array<KeptBlock, 48> blocks;
  std::size_t oldest = 0, bytes = 0;
  ~KeptBlocks() {
    for (const KeptBlock& block : blocks) ::operator delete(block.place, kLine);
  }
};
thread_local KeptBlocks kept;
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
  for (KeptBlock& block : kept.blocks) {
    if (block.place == nullptr || block.bytes != bytes) continue;
    kept.bytes -= bytes;
    return std::exchange(block, {}).place;
  }
  return ::operator new(bytes, kLine);
#else
  return ::operator new(bytes);
#endif
}

void give_lines(void* place, std::size_t bytes) noexcept {
  if (arena != nullptr && arena->give(place, bytes)) return;
#if POSENC_CPU_BACKEND
  KeptBlock given{place, bytes};
  if (bytes <= kLargestKept) {
    // blocks left by another job are freed first; otherwise they would leave no room for this one's
    for (std::size_t i = 0; i < kept.blocks.size() && kept.bytes + bytes > kMostKept; ++i) {
      const KeptBlock old = std::exchange(kept.blocks[kept.oldest], {});
      kept.oldest = (kept.oldest + 1) % kept.blocks.size();
      kept.bytes -= old.bytes;
      ::operator delete(old.place, kLine);
    }
    std::size_t slot = kept.oldest;
    for (std::size_t i = 0; i < kept.blocks.size(); ++i) {
      if (kept.blocks[i].place == nullptr) slot = i;
    }
    if (slot == kept.oldest) kept.oldest = (slot + 1) % kept.blocks.size();
    std::swap(kept.blocks[slot], given);
    kept.bytes += bytes - given.bytes;
  }
  ::operator delete(given.place, kLine);
#else
  ::operator delete(place);
#endif
}

}  // namespace posenc::kernels
