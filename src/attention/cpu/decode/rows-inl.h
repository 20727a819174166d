// Rows of K and V as a decoding step reads them, for code that is compiled once per SIMD target: in place, if they can be.
// Each row has its own offset, so a paged cache needs no copy.

#if defined(POSENC_DECODE_ROWS_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef POSENC_DECODE_ROWS_INL_H
#undef POSENC_DECODE_ROWS_INL_H
#else
#define POSENC_DECODE_ROWS_INL_H
#endif

#include <algorithm>
#include <cstddef>

#include "attention/cpu/pack-inl.h"
#include "kernels/cpu/fetch.h"

HWY_BEFORE_NAMESPACE();
namespace posenc::attend::cpu::HWY_NAMESPACE {

// How many keys and values are processed at a time. A single row, which reads each only once, uses kLongStep:
// otherwise the work before and after a step takes a tenth of the time.
constexpr std::int64_t kDecodeStep = 64, kLongStep = 1024;
// How many keys' weights are computed together where a matrix unit multiplies.
constexpr std::int64_t kUnitBlock = 2 * kDecodeStep;

// A loop with many instructions per row has few rows in flight, so it prefetches rows into the L1 cache this many
// rows ahead. Two queries and 16,384 f16 keys then take 2.7 ms on a Neoverse V1 instead of 3.0; bf16, with half the
// instructions per key, gains nothing.
constexpr std::int64_t kRowsSoon = 8;

// Rows at a constant distance, in bytes.
struct EvenRows {
  const std::byte* first;
  std::int64_t step;
  std::int64_t ahead;
  HWY_INLINE std::int64_t ahead_of(std::int64_t) const { return ahead; }
  HWY_INLINE std::int64_t soon() const { return kRowsSoon * step; }
  HWY_INLINE const void* operator[](std::int64_t j) const { return first + j * step; }
  HWY_INLINE EvenRows from(std::int64_t j) const { return {first + j * step, step, ahead}; }
};

// Where the rows of a step are. There are offsets for a multiple of eight rows: the last one is repeated.
struct StepRows {
  const std::byte* first;
  const std::int64_t* offsets;  // bytes
  std::int64_t ahead = 0;       // how far ahead to prefetch; 0: the rows are probably in a cache
  std::int64_t even_step = 0;   // the distance of the rows if constant, not counting the repeated last one; else 0
  std::int64_t later = 0;       // of pages: row j + later is prefetched with row j, wherever it is; else 0
  HWY_INLINE std::int64_t ahead_of(std::int64_t j) const {
    return later > 0 ? offsets[j + later] - offsets[j] : ahead;
  }
  HWY_INLINE std::int64_t soon() const { return kRowsSoon * even_step; }
  HWY_INLINE const void* operator[](std::int64_t j) const { return first + offsets[j]; }
  HWY_INLINE StepRows from(std::int64_t j) const { return {first, offsets + j, ahead, even_step, later}; }
};
// Calls visit(rows) for `count` rows, with EvenRows if possible: without a table of offsets, a loop has a quarter
// fewer instructions, and more rows are in flight.
template <class Visitor> HWY_INLINE void with_places(const StepRows& rows, std::int64_t count, const Visitor& visit) {
  if (rows.even_step > 0 && count % 8 == 0) {
    visit(EvenRows{rows.first + rows.offsets[0], rows.even_step, rows.ahead});
  } else {
    visit(rows);
  }
}

// Prefetches memory some way past a row: if rows are contiguous, that is a row of a later step. On arm64 into the
// L3 cache: a Neoverse V1 then reads 40 GB/s, but only 35 into the L2 cache, which has room for fewer lines in
// flight.
constexpr int kFetchTo = HWY_ARCH_ARM_A64 ? 1 : 2;
template <std::int64_t kBytes> HWY_INLINE void fetch_later(const void* row, std::int64_t ahead) {
  const auto at = reinterpret_cast<std::uintptr_t>(row) + static_cast<std::uintptr_t>(ahead);
  __builtin_prefetch(reinterpret_cast<const void*>(at), 0, kFetchTo);
  if constexpr (kBytes > 64) __builtin_prefetch(reinterpret_cast<const void*>(at + 64), 0, kFetchTo);
  if constexpr (kBytes > 128) __builtin_prefetch(reinterpret_cast<const void*>(at + 128), 0, kFetchTo);
  if constexpr (kBytes > 192) __builtin_prefetch(reinterpret_cast<const void*>(at + 192), 0, kFetchTo);
}

// Prefetches two lines, `soon` bytes past a row, into the L1 cache.
HWY_INLINE void fetch_soon(const void* row, std::int64_t soon) {
  const auto at = reinterpret_cast<std::uintptr_t>(row) + static_cast<std::uintptr_t>(soon);
  __builtin_prefetch(reinterpret_cast<const void*>(at), 0, 3);
  __builtin_prefetch(reinterpret_cast<const void*>(at + 64), 0, 3);
}

// fetch_later for the given number of bytes.
HWY_INLINE void fetch_row_later(const void* row, std::int64_t bytes, std::int64_t ahead) {
  for (std::int64_t at = 0; at < bytes; at += 64) fetch_later<64>(static_cast<const std::byte*>(row) + at, ahead);
}

// Calls visit(rows, first, count, rescale) for kDecodeStep rows at a time, so that sums of rounded products stay
// short. The previous sums are rescaled only once.
template <class Visitor>
HWY_INLINE void for_each_64_rows(const StepRows& values, std::int64_t count, float rescale, const Visitor& visit) {
  with_places(values, count, [&](const auto& rows) HWY_ATTR {
    for (std::int64_t at = 0; at < count; at += kDecodeStep) {
      visit(rows.from(at), at, std::min(kDecodeStep, count - at), at == 0 ? rescale : 1.0f);
    }
  });
}

// The rows of a step of K or V: read in place, or widened (and rotated) into a buffer. Heads share a reader.
struct RowReader {
  const HeadTensor<const void>& x;
  const RowRotation& rotation;
  std::int64_t heads;     // that take turns at each step
  std::int64_t last_key;  // no key from here on is read
  bool in_place = x.type != DataType::kF64 && x.feature_stride == 1 && rotation.cos_sin == nullptr &&
                  (x.type != DataType::kQ8_0 || lanes() <= Q8Block::kElements);
  DataType type = in_place ? x.type : DataType::kF32;
  AlignedVector<float> buffer =
      AlignedVector<float>(in_place ? 0 : static_cast<std::size_t>(kDecodeStep * x.features));
  std::int64_t step = (in_place ? x.token_stride : x.features) * size_of(type);
  std::int64_t later = kDecodeStep;  // of pages, or several heads: how many rows later the row is that is prefetched
  std::int64_t ahead = ahead_in_bytes();
  std::int64_t ready = 0;                       // how many offsets are valid for consecutive rows
  std::int64_t begin_ready = 0, end_ready = 0;  // the keys whose offsets in pages are there
  std::int64_t offsets[kLongStep + kUnitBlock + 8] = {};

  // Rows that lie one after another are prefetched far ahead; of several heads, the row of the next step.
  std::int64_t ahead_in_bytes() const {
    // four times: rows that are only in the L3 cache are prefetched, too
    const std::int64_t bytes = x.batch * x.heads * x.sequence * x.features / elements_of_block(type) * size_of(type);
    const std::int64_t far = in_place ? kernels::cpu::ahead_for(4 * bytes) : 0;
    return far > 0 && heads > 1 ? later * step : far;
  }
  void set_later(std::int64_t rows) {
    later = rows;
    ahead = ahead_in_bytes();
  }
  // Offsets of keys `begin` to `end`, and of those that are prefetched with them: past the last key, that one. Steps of a
  // block find those of the block.
  void find_in_pages(std::int64_t b, std::int64_t begin, std::int64_t end) {
    begin_ready = begin, end_ready = end;
    const std::int64_t past = std::min(end + later, last_key);
    for (std::int64_t t = begin; t < past;) {
      const std::int64_t page = x.pages[b * x.page_row + t / x.page_tokens], place = t % x.page_tokens;
      const std::int64_t last = std::min(past, t - place + x.page_tokens);
      std::int64_t offset = page * x.batch_stride * size_of(x.type) + place * step;
      for (; t < last; ++t, offset += step) offsets[t - begin] = offset;
    }
    const std::int64_t found = past - begin;
    std::fill(offsets + found, offsets + (end - begin) + later + 8, offsets[found - 1]);
    // the last row is repeated, up to a multiple of eight
    const std::int64_t count = end - begin;
    for (std::int64_t j = count; j % 8 != 0; ++j) offsets[j] = offsets[count - 1];
  }

  StepRows load(std::int64_t b, std::int64_t g, std::int64_t begin, std::int64_t end) {
    if (!in_place) load_rows(x, rotation, b, g, begin, end, x.features, buffer.data());
    const auto* first = in_place ? static_cast<const std::byte*>(x.data) + g * x.head_stride * size_of(x.type)
                                 : reinterpret_cast<const std::byte*>(buffer.data());
    if (in_place && x.pages != nullptr) {
      const bool are_known = begin_ready <= begin && end <= end_ready && ((end - begin) % 8 == 0 || end == end_ready);
      if (!are_known) find_in_pages(b, begin, end);
      return {first, offsets + (begin - begin_ready), ahead, 0, ahead > 0 ? later : 0};
    }
    const std::int64_t count = end - begin;
    if (in_place) first += b * x.batch_stride * size_of(x.type) + begin * step;
    for (; ready < count; ++ready) offsets[ready] = ready * step;
    if (count % 8 != 0) {
      for (std::int64_t j = count; j % 8 != 0; ++j) offsets[j] = offsets[count - 1];
      ready = std::min(ready, count);
    }
    return {first, offsets, ahead, step};
  }
};

// Prefetches the rows that lie ahead of the keys and values of a block while the block is computed, a few cache lines at a time: a
// processor has room for little more than a dozen in flight, and what waits for room makes everything wait.
struct BlockFetch {
  struct Lines {
    StepRows rows = {};
    std::int64_t bytes = 0, count = 0, row = 0, at = 0;
    // Whether there was one.
    HWY_INLINE bool fetch_next() {
      if (row >= count) return false;
      fetch_later<64>(static_cast<const std::byte*>(rows[row]) + at, rows.ahead_of(row));
      at += 64;
      if (at >= bytes) at = 0, ++row;
      return true;
    }
    std::int64_t all() const { return count * ((bytes + 63) / 64); }
  } keys, values;

  HWY_INLINE void some(std::int64_t lines) {
    for (std::int64_t i = 0; i < lines; ++i) {
      if (!keys.fetch_next() && !values.fetch_next()) return;
    }
  }
  std::int64_t all() const { return keys.all() + values.all(); }
};

// The bytes of a row.
template <class T> constexpr std::int64_t row_bytes(std::int64_t features) {
  return features / (std::is_same_v<T, Q8Block> ? Q8Block::kElements : 1) * static_cast<std::int64_t>(sizeof(T));
}

// Calls visit(T{}) with the type of the rows that are read in place.
template <class Visitor> HWY_INLINE void with_rows(const RowReader& rows, const Visitor& visit) {
  if (rows.type == DataType::kF16) {
    visit(Half{});
  } else if (rows.type == DataType::kBF16) {
    visit(BFloat16{});
  } else if (rows.type == DataType::kE4M3) {
    visit(E4M3{});
  } else if (rows.type == DataType::kQ8_0) {
    visit(Q8Block{});
  } else {
    visit(float{});
  }
}

// Widens rows of 16 or 8 bits, at most kDecodeStep of them, to f32 in a buffer.
HWY_INLINE StepRows widened(const RowReader& reader, const StepRows& rows, std::int64_t count, float* to,
                            std::int64_t* offsets) {
  const std::int64_t features = reader.x.features, bytes = features * static_cast<std::int64_t>(sizeof(float));
  with_rows(reader, [&](auto kind) HWY_ATTR {
    using T = decltype(kind);
    for (std::int64_t j = 0; j < count; ++j) {
      const auto* const row = static_cast<const T*>(rows[j]);
      fetch_row_later(row, row_bytes<T>(features), rows.ahead_of(j));
      widen_row(row, 1, features, to + j * features);
      offsets[j] = j * bytes;
    }
  });
  for (std::int64_t j = count; j % 8 != 0; ++j) offsets[j] = offsets[count - 1];
  return {reinterpret_cast<const std::byte*>(to), offsets, 0, bytes};
}

}  // namespace posenc::attend::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
