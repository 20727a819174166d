#include "kernels/slots.h"

#include <fmt/format.h>

#include <algorithm>

#include "kernels/each_row.h"
#include "kernels/row_copy.h"
#include "posenc/error.h"

namespace posenc::kernels {

HeadTensor<void> cache_of(std::string_view verb, std::string_view what, const TensorView& cache, Types types) {
  check_tensor(verb, what, cache, 4, 4, "4 axes, pages, heads, page size, features", types);
  check_writable(verb, what, cache);
  if (is_of_8_bits(cache.type) && cache.device != Device::kHost) {
    raise(fmt::format("{}: on cuda there is no kernel for a cache of {}", verb, name_of(cache.type)));
  }
  return heads_of(verb, what, cache, types);
}

void check_fits(std::string_view verb, const HeadTensor<void>& cache, const HeadTensor<const void>& x,
                std::int64_t slots) {
  if (cache.heads != x.heads || cache.features != x.features) {
    raise(fmt::format("{}: the cache has {} heads of {} features but the tensor has {} of {}", verb, cache.heads,
                      cache.features, x.heads, x.features));
  }
  if (slots != x.batch * x.sequence) {
    raise(fmt::format("{}: got {} slots for {} sequences of {} tokens; each token needs one", verb, slots, x.batch,
                      x.sequence));
  }
}

CallSlots::CallSlots(std::string_view verb, const Slots& slots, std::int64_t limit, Device tensors) {
  if (!slots.ids.empty() && !slots.ids_i32.empty()) {
    raise(fmt::format("{}: slots have both ids and ids_i32; give only one of them", verb));
  }
  list_.tokens = slot_count(slots);
  list_.limit = limit;
  list_.on_device = slots.device != Device::kHost;
  if (list_.on_device) {
    if (tensors != slots.device) {
      raise(fmt::format("{}: the slots are on {} but the cache is on {}", verb, name_of(slots.device),
                        name_of(tensors)));
    }
    list_.ids = slots.ids.empty() ? nullptr : slots.ids.data();
    list_.narrow_ids = slots.ids_i32.empty() ? nullptr : slots.ids_i32.data();
    return;
  }
  wide_.assign(slots.ids_i32.begin(), slots.ids_i32.end());
  list_.ids = wide_.empty() ? slots.ids.data() : wide_.data();
  for (const std::int64_t slot : values()) {
    if (slot < limit) continue;
    raise(fmt::format("{}: slot {} is past the end of the cache, which has {} slots", verb, slot, limit));
  }
}

void check_apart(std::string_view verb, std::span<const std::int64_t> slots) {
  AlignedVector<std::int64_t> used;
  used.reserve(slots.size());
  for (const std::int64_t slot : slots) {
    if (slot >= 0) used.push_back(slot);
  }
  std::sort(used.begin(), used.end());
  const auto twice = std::adjacent_find(used.begin(), used.end());
  if (twice != used.end()) raise(fmt::format("{}: slot {} occurs twice", verb, *twice));
}

void check_apart(std::string_view verb, const CallSlots& slots) {
  if (!slots.list().on_device) check_apart(verb, slots.values());
}

AlignedVector<SlotRun> runs_of(const HeadTensor<void>& cache, std::int64_t sequence,
                               std::span<const std::int64_t> slots) {
  const std::int64_t size = cache.sequence;
  AlignedVector<SlotRun> runs;
  runs.reserve(slots.size());
  for (std::int64_t i = 0; i < std::ssize(slots); ++i) {
    const std::int64_t slot = slots[i], b = i / sequence, token = i % sequence;
    if (slot < 0) continue;
    if (!runs.empty()) {
      SlotRun& last = runs.back();
      const bool goes_on = last.b == b && last.token + last.count == token && last.page == slot / size &&
                           last.offset + last.count == slot % size;
      if (goes_on) {
        ++last.count;
        continue;
      }
    }
    runs.push_back({b, token, slot / size, slot % size, 1});
  }
  return runs;
}

void copy_to_slots(const HeadTensor<void>& cache, const Scales& scales, std::span<const std::int64_t> slots,
                   const HeadTensor<const void>& x) {
  with_cache_type(cache.type, [&](auto to_kind) {
    with_type(x.type, [&](auto from_kind) {
      using To = decltype(to_kind);
      using From = decltype(from_kind);
      const RowCopy<To, From> copy{x.features, cache.feature_stride, x.feature_stride};
      each_row(std::ssize(slots) * x.heads, x.features / elements_of_block(cache.type) * size_of(cache.type),
               [&](std::int64_t row) {
                 const std::int64_t i = row / x.heads, h = row % x.heads;
                 const std::int64_t slot = slots[i];
                 if (slot < 0) return;
                 copy(cache.row<To>(slot / cache.sequence, h, slot % cache.sequence),
                      x.row<From>(i / x.sequence, h, i % x.sequence), scales.of(h));
               });
    });
  });
}

HeadTensor<const void> read_only(const HeadTensor<void>& x) {
  HeadTensor<const void> same;
  same.data = x.data, same.type = x.type;
  same.batch = x.batch, same.heads = x.heads, same.sequence = x.sequence, same.features = x.features;
  same.batch_stride = x.batch_stride, same.head_stride = x.head_stride;
  same.token_stride = x.token_stride, same.feature_stride = x.feature_stride;
  return same;
}

}  // namespace posenc::kernels
