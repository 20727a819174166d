#include "kernels/cpu/aligned.h"

#include <array>
#include <new>
#include <utility>

namespace posenc::kernels::cpu {
namespace {

constexpr std::align_val_t kLine{64};
constexpr std::size_t kLargestKept = 1 << 20;

struct Block {
  void* place = nullptr;
  std::size_t bytes = 0;
};
struct KeptBlocks {
  std::array<Block, 8> blocks;
  std::size_t oldest = 0;
  ~KeptBlocks() {
    for (const Block& block : blocks) ::operator delete(block.place, kLine);
  }
};
thread_local KeptBlocks kept;

}  // namespace

void* take_lines(std::size_t bytes) {
  for (Block& block : kept.blocks) {
    if (block.place != nullptr && block.bytes == bytes) return std::exchange(block, {}).place;
  }
  return ::operator new(bytes, kLine);
}

void give_lines(void* place, std::size_t bytes) noexcept {
  Block given{place, bytes};
  if (bytes <= kLargestKept) {
    std::size_t slot = kept.oldest;
    for (std::size_t i = 0; i < kept.blocks.size(); ++i) {
      if (kept.blocks[i].place == nullptr) slot = i;
    }
    if (slot == kept.oldest) kept.oldest = (slot + 1) % kept.blocks.size();
    std::swap(kept.blocks[slot], given);
  }
  ::operator delete(given.place, kLine);
}

}  // namespace posenc::kernels::cpu
