#include "kernels/cuda/call.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <mutex>
#include <string>
#include <unordered_map>

#include "posenc/backend.h"
#include "posenc/error.h"

namespace posenc::kernels::cuda {
namespace {

static_assert(kTypeF32 == static_cast<int>(DataType::kF32) && kTypeF64 == static_cast<int>(DataType::kF64));
static_assert(kTypeF16 == static_cast<int>(DataType::kF16) && kTypeBF16 == static_cast<int>(DataType::kBF16));

// Two: one for tensors on the GPU, where nothing waits for the result, and one for copies of host tensors, one call
// at a time.
struct Faults {
  Fault* slots = nullptr;
  std::mutex copying;
};
Faults& faults() {
  static Faults& all = *[] {
    auto* made = new Faults;
    void* memory = nullptr;
    check(driver().cuMemHostAlloc(&memory, 2 * sizeof(Fault), kHostPortable | kHostMapped), "allocating host memory");
    std::memset(memory, 0, 2 * sizeof(Fault));
    made->slots = static_cast<Fault*>(memory);
    return made;
  }();
  return all;
}

// The numbers of forms, looked up by their bytes. They are kept because work in flight reads them; past the limit,
// all work is waited for and they are freed.
struct Kept {
  Context context;
  std::string bytes;
  Address device;
};
struct Store {
  std::mutex lock;
  std::unordered_multimap<std::uint64_t, Kept> copies;
  std::size_t total = 0;
};

// Four independent sums, because each product waits for the previous one.
std::uint64_t hash_of(std::string_view bytes) {
  std::uint64_t sums[4] = {1, 2, 3, 4};
  std::size_t at = 0;
  for (; at + 32 <= bytes.size(); at += 32) {
    for (std::size_t n = 0; n < 4; ++n) {
      std::uint64_t word = 0;
      std::memcpy(&word, bytes.data() + at + 8 * n, 8);
      sums[n] = (sums[n] ^ word) * 0x9E3779B97F4A7C15ull;
      sums[n] ^= sums[n] >> 29;
    }
  }
  std::uint64_t hash = bytes.size();
  for (const std::uint64_t sum : sums) hash = (hash ^ sum) * 0x9E3779B97F4A7C15ull;
  for (; at < bytes.size(); ++at) hash = (hash ^ static_cast<unsigned char>(bytes[at])) * 0x100000001B3ull;
  return hash;
}

constexpr std::size_t kStoreLimit = std::size_t{256} << 20;
Store& store() {
  static Store& all = *new Store;
  return all;
}

std::atomic<std::uint64_t> store_generation = 0;

void trim_store(Context context) {
  Store& all = store();
  const std::lock_guard<std::mutex> hold(all.lock);
  if (all.total <= kStoreLimit) return;
  ++store_generation;
  check(driver().cuCtxSynchronize(), "waiting");
  for (auto it = all.copies.begin(); it != all.copies.end();) {
    if (it->second.context != context) {
      ++it;
      continue;
    }
    check(driver().cuMemFree_v2(it->second.device), "freeing memory");
    it = all.copies.erase(it);
  }
  all.total = 0;
}

// The driver's pool returns memory to the system at every wait, unless told to keep some; the next call would then
// wait for it. If nothing has been set, it keeps 1 GiB.
void keep_borrowed_memory() {
  static std::atomic<std::uint64_t> told = 0;  // one bit per GPU
  DeviceNumber device = 0;
  check(driver().cuCtxGetDevice(&device), "asking for the GPU");
  const std::uint64_t bit = std::uint64_t{1} << (device & 63);
  if ((told.fetch_or(bit) & bit) != 0) return;
  MemoryPool pool = nullptr;
  std::uint64_t kept = 0;
  check(driver().cuDeviceGetDefaultMemPool(&pool, device), "asking for the pool of memory");
  check(driver().cuMemPoolGetAttribute(pool, kPoolReleaseThreshold, &kept), "asking for the pool of memory");
  if (kept != 0) return;
  kept = std::uint64_t{1} << 30;
  check(driver().cuMemPoolSetAttribute(pool, kPoolReleaseThreshold, &kept), "keeping borrowed memory");
}

template <class Void> TokenParams token_params(const TokenTensor<Void>& x, void* data) {
  TokenParams p{};
  p.data = data;
  p.type = static_cast<std::int32_t>(x.type);
  p.lead_rank = x.lead_shape.rank;
  for (int axis = 0; axis < x.lead_shape.rank; ++axis) {
    p.lead_shape[axis] = x.lead_shape[axis];
    p.lead_strides[axis] = x.lead_strides[axis];
  }
  p.batch = x.batch, p.sequence = x.sequence, p.width = x.width;
  p.token_stride = x.token_stride, p.column_stride = x.column_stride;
  return p;
}
template <class Void> HeadParams head_params(const HeadTensor<Void>& x, void* data) {
  return {data, static_cast<std::int32_t>(x.type), x.batch_stride, x.head_stride, x.token_stride, x.feature_stride};
}

// `held`: what this call has allocated before.
Address allocate_copy(std::size_t size, std::size_t held) {
  Address device = 0;
  const Result result = driver().cuMemAlloc_v2(&device, size);
  if (result == kOutOfMemory) {
    std::size_t free = 0, total = 0;
    check(driver().cuMemGetInfo_v2(&free, &total), "asking for free memory");
    raise(
        fmt::format("cuda: copies of the tensors on the host need at least {} bytes, but {} of the GPU's memory are "
                    "free; pass tensors on the GPU, or fewer heads, sequences or tokens at a time",
                    held + size, held + free));
  }
  check(result, fmt::format("allocating {} bytes", size));
  return device;
}

// Copies the elements of a tensor and nothing between them, which may belong to another tensor.
void copy_elements(char* to, const char* from, std::size_t element, const Extents& shape, const Extents& strides,
                   int axis = 0) {
  const auto step = axis < shape.rank ? strides[axis] * static_cast<std::int64_t>(element) : 0;
  if (axis == shape.rank) {
    std::memcpy(to, from, element);
  } else if (axis == shape.rank - 1 && strides[axis] == 1) {
    std::memcpy(to, from, element * static_cast<std::size_t>(shape[axis]));
  } else {
    for (std::int64_t n = 0; n < shape[axis]; ++n) {
      copy_elements(to + n * step, from + n * step, element, shape, strides, axis + 1);
    }
  }
}

struct ShapeAndStrides {
  Extents shape, strides;
};
template <class Void> ShapeAndStrides extents_of(const TokenTensor<Void>& x) {
  ShapeAndStrides all{x.lead_shape, x.lead_strides};
  all.shape.push_back(x.sequence), all.strides.push_back(x.token_stride);
  all.shape.push_back(x.width), all.strides.push_back(x.column_stride);
  return all;
}
template <class Void> ShapeAndStrides extents_of(const HeadTensor<Void>& x) {
  return {{x.batch, x.heads, x.sequence, x.features},
          {x.batch_stride, x.head_stride, x.token_stride, x.feature_stride}};
}

}  // namespace

Call::Call(const Site& site) : site_(site) {
  context_ = ensure_context();
  trim_store(context_);
  Faults& all = faults();
  if (site_.device == Device::kHost) all.copying.lock();
}

Call::~Call() {
  const Driver& d = driver();
  for (const Copy& copy : copies_) d.cuMemFree_v2(copy.device);
  for (const Address address : borrowed_) d.cuMemFreeAsync(address, static_cast<Stream>(site_.stream));
  if (site_.device == Device::kHost) faults().copying.unlock();
}

Fault* Call::fault() const { return faults().slots + (site_.device == Device::kHost ? 1 : 0); }

void* Call::place(const void* data, const Extents& shape, const Extents& strides, DataType type, bool written) {
  if (site_.device != Device::kHost) return const_cast<void*>(data);
  std::int64_t low = 0, high = 0;
  for (int axis = 0; axis < shape.rank; ++axis) {
    if (shape[axis] == 0) return nullptr;
    const std::int64_t reach = (shape[axis] - 1) * strides[axis];
    (reach < 0 ? low : high) += reach;
  }
  const std::int64_t element = size_of(type), before = -low * element;
  char* const first = static_cast<char*>(const_cast<void*>(data));
  Copy wanted{first - before,
              static_cast<std::size_t>((high - low + 1) * element),
              0,
              before,
              written,
              shape,
              strides,
              static_cast<std::size_t>(element)};
  std::size_t held = 0;
  for (Copy& copy : copies_) {
    held += copy.size;
    if (copy.host != wanted.host || copy.size != wanted.size) continue;
    wanted.device = copy.device;
    if (written) copy = wanted;
    return reinterpret_cast<char*>(wanted.device) + before;
  }
  wanted.device = allocate_copy(wanted.size, held);
  copies_.push_back(wanted);
  check(driver().cuMemcpyHtoD_v2(wanted.device, wanted.host, wanted.size), "copying to the GPU");
  return reinterpret_cast<char*>(wanted.device) + before;
}

const void* Call::bytes(const void* data, std::size_t size) {
  if (size == 0) return nullptr;
  const std::string_view key(static_cast<const char*>(data), size);
  const Context context = context_;
  Store& all = store();
  const std::lock_guard<std::mutex> hold(all.lock);
  const std::uint64_t hash = hash_of(key);
  const auto [begin, end] = all.copies.equal_range(hash);
  for (auto it = begin; it != end; ++it) {
    if (it->second.context == context && it->second.bytes == key) {
      return reinterpret_cast<const void*>(it->second.device);
    }
  }
  Address device = 0;
  check(driver().cuMemAlloc_v2(&device, size), fmt::format("allocating {} bytes", size));
  check(driver().cuMemcpyHtoD_v2(device, data, size), "copying to the GPU");
  // The copy may still be in flight, and streams that do not wait for the default one would not wait for it.
  check(driver().cuStreamSynchronize(nullptr), "copying to the GPU");
  all.copies.emplace(hash, Kept{context, std::string(key), device});
  all.total += size;
  return reinterpret_cast<const void*>(device);
}

TokenParams Call::tokens(const TokenTensor<void>& x) {
  const auto all = extents_of(x);
  return token_params(x, place(x.data, all.shape, all.strides, x.type, true));
}
TokenParams Call::tokens(const TokenTensor<const void>& x) {
  const auto all = extents_of(x);
  return token_params(x, place(x.data, all.shape, all.strides, x.type, false));
}
HeadParams Call::heads(const HeadTensor<void>& x) {
  const auto all = extents_of(x);
  return head_params(x, place(x.data, all.shape, all.strides, x.type, true));
}
HeadParams Call::heads(const HeadTensor<const void>& x) {
  const auto all = extents_of(x);
  return head_params(x, place(x.data, all.shape, all.strides, x.type, false));
}

TableParams Call::table(const ConstTensorView& view) {
  if (view.data == nullptr) return {};
  const int rank = view.shape.rank;
  return {place(view.data, view.shape, view.strides, view.type, false), static_cast<std::int32_t>(view.type),
          rank > 2 ? view.strides[0] : 0, view.strides[rank - 2], view.strides[rank - 1]};
}

UseWorkspace::Room*& UseWorkspace::current() {
  thread_local Room* room = nullptr;
  return room;
}
UseWorkspace::UseWorkspace(std::span<std::byte> memory) : before_(current()) {
  if (memory.empty()) return;
  room_ = {memory.data(), memory.size(), 0, false};
  current() = &room_;
}
UseWorkspace::~UseWorkspace() { current() = before_; }
bool is_measuring() {
  const UseWorkspace::Room* const room = UseWorkspace::current();
  return room != nullptr && room->is_measured;
}

void* Call::borrow(std::size_t size) {
  if (UseWorkspace::Room* const room = UseWorkspace::current(); room != nullptr) {
    constexpr std::size_t kLine = 256;
    const std::size_t start = room->used;
    room->used += (size + kLine - 1) / kLine * kLine;
    if (room->is_measured) return reinterpret_cast<void*>(kLine + start);  // the address is never read
    if (room->used <= room->size) return room->data + start;
    raise(fmt::format("cuda: the workspace has {} bytes but more are needed; workspace_bytes says how many",
                      room->size));
  }
  keep_borrowed_memory();
  Address device = 0;
  check(driver().cuMemAllocAsync(&device, size, static_cast<Stream>(site_.stream)),
        fmt::format("allocating {} bytes", size));
  borrowed_.push_back(device);
  return reinterpret_cast<void*>(device);
}

const void* Call::copied(const void* data, std::size_t size) {
  void* const copy = borrow(size);
  if (is_measuring()) return copy;
  check(driver().cuMemcpyHtoDAsync_v2(reinterpret_cast<Address>(copy), data, size, static_cast<Stream>(site_.stream)),
        "copying to the GPU");
  return copy;
}

PositionParams Call::positions(const TokenPositions& p) {
  PositionParams params{p.first, nullptr, p.batch_stride, p.axis_stride, p.limit};
  if (p.narrow_ids != nullptr) raise("position ids on a GPU must be i64, not i32");
  const auto refuse_negative = [](std::int64_t position) {
    if (position < 0) raise(fmt::format("on a GPU positions must not be negative, but one is {}", position));
  };
  if (p.ids == nullptr) refuse_negative(p.first);
  if (p.ids == nullptr) return params;
  if (!p.on_device) std::for_each(p.ids, p.ids + p.count, refuse_negative);
  if (p.on_device) {
    params.ids = p.ids;
  } else if (site_.device == Device::kHost) {
    params.ids = static_cast<const std::int64_t*>(place(p.ids, {p.count}, {1}, DataType::kI64, false));
  } else {
    const std::size_t size = p.count * sizeof(std::int64_t);
    params.ids = static_cast<const std::int64_t*>(copied(p.ids, size));
  }
  return params;
}

SlotParams Call::slots(const SlotList& list) {
  if (!list.is_given()) return {};
  SlotParams params{list.ids, list.narrow_ids, list.limit};
  if (list.on_device) return params;
  const std::size_t count = list.tokens;
  params.ids = static_cast<const std::int64_t*>(copied(list.ids, count * sizeof(std::int64_t)));
  return params;
}

WaveParams Call::waves(std::span<const Frequency> frequencies, std::span<const std::uint8_t> axes,
                       const Float32Angles& angles, double scale) {
  static_assert(sizeof(Frequency) == sizeof(FrequencyWords) && sizeof(BlendParams) == sizeof(Float32Angles::Blend));
  WaveParams p{};
  // Each thread remembers the last ones: looking them up takes as long as a small kernel.
  struct LastFrequencies {
    Context context = nullptr;
    std::uint64_t generation = 0;
    std::vector<Frequency> source;
    const FrequencyWords* frequencies = nullptr;
    const FrequencyTop* tops = nullptr;
  };
  thread_local LastFrequencies last;
  if (last.context != context_ || last.generation != generation() || last.source.size() != frequencies.size() ||
      std::memcmp(last.source.data(), frequencies.data(), frequencies.size_bytes()) != 0) {
    std::vector<FrequencyTop> tops;
    tops.reserve(frequencies.size());
    for (const Frequency& frequency : frequencies) tops.push_back({frequency.words[2], frequency.words[3]});
    last = {context_,
            generation(),
            {frequencies.begin(), frequencies.end()},
            reinterpret_cast<const FrequencyWords*>(numbers(frequencies)),
            numbers(std::span<const FrequencyTop>(tops))};
  }
  p.frequencies = last.frequencies;
  p.tops = last.tops;
  const bool first_drives_all = std::all_of(axes.begin(), axes.end(), [](std::uint8_t axis) { return axis == 0; });
  p.axes = first_drives_all ? nullptr : numbers(axes);
  p.factors = numbers(std::span<const float>(angles.factors));
  p.blends = reinterpret_cast<const BlendParams*>(numbers(std::span<const Float32Angles::Blend>(angles.blends)));
  p.chain = angles.chain;
  p.scale = scale;
  return p;
}

void Call::take_back(const Copy& copy) const {
  const bool is_dense = static_cast<std::size_t>(count_of(copy.shape)) * copy.element == copy.size;
  std::vector<char> between(is_dense ? 0 : copy.size);
  char* const to = is_dense ? copy.host : between.data();
  check(driver().cuMemcpyDtoH_v2(to, copy.device, copy.size), "copying from the GPU");
  if (!is_dense) copy_elements(copy.host + copy.before, to + copy.before, copy.element, copy.shape, copy.strides);
}

Outcome Call::finish() {
  if (site_.device != Device::kHost) return {};
  check(driver().cuStreamSynchronize(nullptr), "running a kernel");
  for (const Copy& copy : copies_) {
    if (copy.written) take_back(copy);
  }
  const Fault found = *fault();
  *fault() = {};
  if (found.kind == Fault::kUndecided) return {false, found.position, found.column};
  return {};
}

std::uint64_t Call::generation() const { return store_generation; }

LaunchShape spread(std::int64_t work, unsigned threads) {
  constexpr std::int64_t kMostBlocks = 1 << 16;
  return {std::clamp<std::int64_t>((work + threads - 1) / threads, 1, kMostBlocks), threads, 0};
}

}  // namespace posenc::kernels::cuda

namespace posenc {

void synchronize(const Run& run) {
  using namespace kernels::cuda;
  if (find_driver() == nullptr) return;
  ensure_context();
  check(driver().cuStreamSynchronize(static_cast<Stream>(run.stream)), "waiting for a stream");
  Fault& slot = faults().slots[0];
  const Fault found = slot;
  slot = {};
  if (found.kind == Fault::kPosition) {
    raise(fmt::format("cuda: position id {} is out of range; it was treated as 0", found.position));
  }
  if (found.kind == Fault::kLength) {
    raise(fmt::format("cuda: a sequence has {} keys but the cache has room for {}; it was treated as empty",
                      found.position, found.column));
  }
  if (found.kind == Fault::kPage) {
    raise(fmt::format("cuda: the block table names page {} but there are {}; page 0 was read", found.position,
                      found.column));
  }
  if (found.kind == Fault::kSlot) {
    raise(fmt::format("cuda: slot {} is past the end of the cache, which has {} slots; its token was skipped",
                      found.position, found.column));
  }
  if (found.kind == Fault::kUndecided) {
    raise(fmt::format("cuda: the rounding of column or pair {} at position {} cannot be decided with 128 bits",
                      found.column, found.position));
  }
}

}  // namespace posenc
