// Writes keys and values to a cache, and moves them within it.

#include "posenc/cache.h"

#include <fmt/format.h>

#include <vector>

#include "kernels/each_row.h"
#include "kernels/row_copy.h"
#include "kernels/slots.h"
#include "posenc/error.h"

namespace posenc {
namespace {

using namespace kernels;

// Tokens of x that go to the slots of a cache on a GPU.
SlotJob job_of(const HeadTensor<void>& cache, const HeadTensor<const void>& x, const SlotList& slots,
               const Site& site) {
  SlotJob job;
  job.parts[0].out = cache;
  job.parts[0].x = x;
  job.parts[0].to_slots = true;
  job.batch = x.batch, job.sequence = x.sequence;
  job.slots = slots;
  job.site = site;
  return job;
}

void copy_slots_on_host(const HeadTensor<void>& pool, std::span<const std::int64_t> written,
                        std::span<const std::int64_t> from) {
  with_cache_type(pool.type, [&](auto kind) {
    using T = decltype(kind);
    const std::int64_t features = pool.features / elements_of_block(pool.type), bytes = features * size_of(pool.type);
    std::vector<T> read(written.size() * static_cast<std::size_t>(features));  // for one head
    const RowCopy<T, T> in{features, 1, pool.feature_stride}, out{features, pool.feature_stride, 1};
    for (std::int64_t h = 0; h < pool.heads; ++h) {
      const auto row_of = [&](std::int64_t slot) {
        return pool.row<T>(slot / pool.sequence, h, slot % pool.sequence);
      };
      each_row(std::ssize(written), bytes, [&](std::int64_t i) {
        if (written[i] >= 0) in(read.data() + i * features, row_of(from[i]));
      });
      each_row(std::ssize(written), bytes, [&](std::int64_t i) {
        if (written[i] >= 0) out(row_of(written[i]), read.data() + i * features);
      });
    }
  });
}

}  // namespace

void rotate_into(const CacheView& pool, const Slots& slots, ConstTensorView k, const Positions& positions,
                 const Rotation& form, const Run& run) {
  constexpr std::string_view verb = "rotate_into";
  const CallThreads threads_of_call(verb, run);
  const TensorView& cache = pool.tensor;
  const Site site = site_of(verb, {cache, k, table_of(form).cosines, table_of(form).sines}, positions, run);
  const HeadTensor<void> to = cache_of(verb, "the cache", cache);
  const Scales scales = scales_of(verb, "the scale", pool.scale, cache.type, cache.shape[1]);
  const HeadTensor<const void> from = heads_of(verb, "k", k);
  if (from.batch * from.heads * from.sequence == 0) return;
  if (do_overlap(cache, k)) raise("rotate_into: the cache overlaps k");
  check_no_rows_of_tokens(verb, form);
  const TokenPositions tokens = rotary_positions_of(verb, positions, form, {from.batch, from.sequence});
  check_fits(verb, to, from, slot_count(slots));
  const CallSlots places(verb, slots, slots_in(to), site.device);
  check_apart(verb, places);
  if (site.device == Device::kHost) {
    // most forms rotate keys as they rotate queries: then nothing is copied
    const Rotation grown = has_growth(form) ? for_keys(form) : Rotation{};
    rotate_to_slots(verb, to, scales, places.values(), from, tokens, has_growth(form) ? grown : form);
    return;
  }
  SlotJob job = job_of(to, from, places.list(), site);
  job.parts[0].rotates = job.parts[0].keys = true;
  job.parts[0].first = first_rotated(verb, "k", form, from);
  job.positions = tokens;
  job.form = &form;
  backend_for(verb, site.device).write_slots(job);
}

void copy_into(const CacheView& pool, const Slots& slots, ConstTensorView x, const Run& run) {
  constexpr std::string_view verb = "copy_into";
  const CallThreads threads_of_call(verb, run);
  const TensorView& cache = pool.tensor;
  const Site site = site_of(verb, {cache, x}, {}, run);
  const HeadTensor<void> to = cache_of(verb, "the cache", cache);
  const Scales scales = scales_of(verb, "the scale", pool.scale, cache.type, cache.shape[1]);
  const HeadTensor<const void> from = heads_of(verb, "x", x);
  if (from.batch * from.heads * from.sequence == 0) return;
  if (do_overlap(cache, x)) raise("copy_into: the cache overlaps x; copy_slots copies within a cache");
  check_fits(verb, to, from, slot_count(slots));
  const CallSlots places(verb, slots, slots_in(to), site.device);
  check_apart(verb, places);
  if (site.device == Device::kHost) {
    copy_to_slots(to, scales, places.values(), from);
  } else {
    backend_for(verb, site.device).write_slots(job_of(to, from, places.list(), site));
  }
}

void copy_slots(TensorView cache, const Slots& to, const Slots& from, const Run& run) {
  constexpr std::string_view verb = "copy_slots";
  const CallThreads threads_of_call(verb, run);
  const Site site = site_of(verb, {cache}, {}, run);
  const HeadTensor<void> pool = cache_of(verb, "the cache", cache);
  if (slot_count(to) != slot_count(from)) {
    raise(fmt::format("copy_slots: `to` has {} slots but `from` has {}", slot_count(to), slot_count(from)));
  }
  if (to.device != from.device) {
    raise(fmt::format("copy_slots: `to` is on {} but `from` is on {}", name_of(to.device), name_of(from.device)));
  }
  const CallSlots sources(verb, from, slots_in(pool), site.device), targets(verb, to, slots_in(pool), site.device);
  if (!targets.list().on_device) {
    std::vector<std::int64_t> written(targets.values().begin(), targets.values().end());  // and have a source
    for (std::size_t i = 0; i < written.size(); ++i) {
      if (sources.values()[i] < 0) written[i] = -1;
    }
    check_apart(verb, written);
    if (site.device == Device::kHost) {
      copy_slots_on_host(pool, written, sources.values());
      return;
    }
  }
  if (slot_count(to) == 0 || slots_in(pool) == 0) return;
  SlotJob job = job_of(pool, read_only(pool), targets.list(), site);
  job.parts[0].from_slots = true;
  job.batch = 1, job.sequence = slot_count(to);
  job.sources = sources.list();
  backend_for(verb, site.device).write_slots(job);
}

std::vector<std::int64_t> slots_of(std::span<const std::int32_t> pages, std::int64_t page_size, std::int64_t first,
                                   std::int64_t count) {
  if (page_size < 1) raise(fmt::format("slots_of: page_size must be 1 or more but is {}", page_size));
  if (first < 0 || count < 0) {
    raise(fmt::format("slots_of: first and count must be 0 or more but are {} and {}", first, count));
  }
  const std::int64_t room =
      std::ssize(pages) <= kPositionLimit / page_size ? std::ssize(pages) * page_size : kPositionLimit;
  if (first > room || count > room - first) {
    raise(fmt::format("slots_of: {} tokens from token {} on do not fit into {} pages of {} tokens", count, first,
                      pages.size(), page_size));
  }
  std::vector<std::int64_t> slots(count);
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t page = pages[(first + i) / page_size];
    if (page < 0) raise(fmt::format("slots_of: token {} is in page {}; pages must be 0 or more", first + i, page));
    if (page > (kPositionLimit - 1) / page_size) {
      raise(fmt::format("slots_of: page {} of {} tokens has slots past 2^53", page, page_size));
    }
    slots[i] = page * page_size + (first + i) % page_size;
  }
  return slots;
}

}  // namespace posenc
