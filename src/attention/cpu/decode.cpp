// Flash-Decoding (Dao et al., 2023): few queries and many keys, so that the time goes into reading the cache, and
// every key and value is read once, as it lies in memory. Keys are split into chunks of a fixed size (split-KV); each
// runs its own online softmax over key blocks and leaves row_max, row_sum and an output accumulator for every query,
// which are merged in the order of the chunks, so that results do not depend on threads. The query heads that share a
// key head (GQA) share its reading.

#include "attention/cpu/decode.h"

#include <bit>
#include <cmath>
#include <limits>

#include "attention/bias_element.h"
#include "kernels/cpu/parallel.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "attention/cpu/decode.cpp"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "hwy/highway.h"

// after foreach_target.h, so that they are compiled for each target
#include "attention/cpu/decode_16-inl.h"
#include "attention/cpu/decode_rows-inl.h"
#include "attention/cpu/exp2-inl.h"
#include "attention/cpu/pack-inl.h"
#include "attention/cpu/panel-inl.h"
#include "attention/cpu/tanh-inl.h"

#ifndef POSENC_DECODE_CHUNK
#define POSENC_DECODE_CHUNK
namespace posenc::attend::cpu {

// Keys and values are read by turns, a block of each: a long block where few rows meet it, so that memory is read in long
// stretches (each of which a processor's prefetching has to find anew: 1024 keys take 10 % less time than 256), a short one
// where many do, so that it stays in the nearest cache for all of them.
constexpr std::int64_t kChunk = 2048, kDecodeBlock = 64, kLongBlock = 1024, kFewRows = 4;
inline const RowRotation kNoRotation = {};  // values are never rotated

// The state of the online softmax of one row of scores, for one chunk of keys.
struct Part {
  float row_max, row_sum;
};

// A chunk of keys of one head of one sequence.
struct Chunk {
  std::int64_t b, g, begin, end;
  Part* parts;  // [rows]
  float* sums;  // [rows, value features]
};

}  // namespace posenc::attend::cpu
#endif

HWY_BEFORE_NAMESPACE();
namespace posenc::attend::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Biases for one query and keys from `key` on, added to the scores, which have room for vectors past the last.
HWY_INLINE void add_biases(const AttentionJob& job, const ScoreBias& bias, const TilePlace& place,
                           float* HWY_RESTRICT scores) {
  const DF d;
  using Kind = ScoreBias::Kind;
  if (bias.kind == Kind::kNone) return;
  const std::int64_t x = job.sight(place.b, place.first_query).beside + job.places.shift - place.first_key;
  const auto h = static_cast<std::size_t>(place.h);
  const auto add = [&](auto bias_of) HWY_ATTR {
    for (std::int64_t j = 0; j < place.keys; j += lanes()) {
      hn::StoreU(bias_of(j, hn::LoadU(d, scores + j)), d, scores + j);
    }
  };
  if (bias.kind == Kind::kSlope) {  // distances are exact in f32 up to 2^24
    const VF slope = hn::Set(d, bias.slopes[h]), first = hn::Sub(hn::Set(d, static_cast<float>(x)), hn::Iota(d, 0));
    add([&](std::int64_t j, VF s)
            HWY_ATTR { return hn::MulAdd(slope, hn::Abs(hn::Sub(first, hn::Set(d, static_cast<float>(j)))), s); });
  } else if (bias.kind == Kind::kDistance) {
    const DistanceRow& row = bias.rows[h];
    if (x <= row.low || x - (place.keys - 1) >= row.high) {  // all in one tail
      const VF tail = hn::Set(d, row.at(x <= row.low ? row.low : row.high));
      add([&](std::int64_t, VF s) HWY_ATTR { return hn::Add(s, tail); });
    } else {
      for (std::int64_t j = 0; j < place.keys; ++j) scores[j] += row.at(std::clamp(x - j, row.low, row.high));
    }
  } else {
    HWY_ALIGN float tile[kLongBlock + kMostLanes];
    fill_tile(job, place, tile, 1, 0);
    for (std::int64_t j = 0; j < place.keys; ++j) scores[j] += tile[j];
  }
}

// One step of the online softmax: scores become weights below the new row maximum; they have room for vectors past the
// last, which become 0. Returns the factor that rescales the accumulator.
HWY_INLINE float online_softmax(float* HWY_RESTRICT scores, std::int64_t count, Part& part) {
  const DF d;
  const float none = -std::numeric_limits<float>::infinity();
  std::fill(scores + count, scores + count + kMostLanes, none);
  VF most = hn::Set(d, part.row_max);
  for (std::int64_t j = 0; j < count; j += lanes()) most = hn::Max(most, hn::LoadU(d, scores + j));
  const float largest = hn::GetLane(hn::MaxOfLanes(d, most));
  const float safe = largest == none ? 0.0f : largest;
  const VF base = hn::Set(d, safe);
  VF total = hn::Zero(d);
  for (std::int64_t j = 0; j < count; j += lanes()) {
    const VF p = exp2_of_negative(d, hn::Sub(hn::LoadU(d, scores + j), base));
    hn::StoreU(p, d, scores + j);
    total = hn::Add(total, p);
  }
  const float rescale = hn::GetLane(exp2_of_negative(d, hn::Set(d, part.row_max - safe)));
  part.row_max = largest;
  part.row_sum = part.row_sum * rescale + hn::GetLane(hn::SumOfLanes(d, total));
  return rescale;
}

// The rows of a key block of K or V: where they lie in memory, or after they were widened (and rotated) into a buffer.
struct BlockRows {
  const HeadTensor<const void>& x;
  const RowRotation& rotation;
  bool in_place = x.type != DataType::kF64 && x.feature_stride == 1 && rotation.cos_sin == nullptr;
  DataType type = in_place ? x.type : DataType::kF32;
  std::int64_t block = kDecodeBlock;
  AlignedVector<float> buffer = AlignedVector<float>(in_place ? 0 : static_cast<std::size_t>(block * x.features));
  const void* rows[kLongBlock + 4] = {};

  void load(std::int64_t b, std::int64_t g, std::int64_t begin, std::int64_t end) {
    if (!in_place) load_rows(x, rotation, b, g, begin, end, x.features, buffer.data());
    const auto* const first = in_place ? static_cast<const std::byte*>(x.data) + g * x.head_stride * size_of(x.type)
                                       : reinterpret_cast<const std::byte*>(buffer.data());
    const std::int64_t step = (in_place ? x.token_stride : x.features) * size_of(type);
    const bool is_paged = in_place && x.pages != nullptr;
    for (std::int64_t t = begin; t < end;) {
      const std::int64_t offset = is_paged ? t % x.page_tokens : in_place ? t : t - begin;
      const std::int64_t last = is_paged ? std::min(end, t - offset + x.page_tokens) : end;
      const std::int64_t start = is_paged ? x.pages[b * x.page_row + t / x.page_tokens] : b;
      const std::byte* row = first + offset * step + (in_place ? start * x.batch_stride * size_of(x.type) : 0);
      for (; t < last; ++t, row += step) rows[t - begin] = row;
    }
  }
};

// Calls visit(T{}) with the type of rows that are read in place.
template <class Visitor> HWY_INLINE void with_rows(const BlockRows& rows, const Visitor& visit) {
  if (rows.type == DataType::kF16) {
    visit(Half{});
  } else if (rows.type == DataType::kBF16) {
    visit(BFloat16{});
  } else {
    visit(float{});
  }
}

// One chunk of keys and all queries that share its key head.
struct ChunkPass {
  const AttentionJob& job;
  const ScoreBias& bias;
  const Chunk& chunk;
  std::int64_t rows = job.group * job.q.sequence;
  std::int64_t block = rows < kFewRows ? kLongBlock : kDecodeBlock;
  BlockRows k{.x = job.k, .rotation = job.k_rotation, .block = block};
  BlockRows v{.x = job.v, .rotation = kNoRotation, .block = block};
  AlignedVector<float> q = AlignedVector<float>(static_cast<std::size_t>(rows * job.q.features));
  AlignedVector<std::uint16_t> narrow_q = AlignedVector<std::uint16_t>(k.type == DataType::kF32 ? 0 : q.size());
#if POSENC_NATIVE_16
  AlignedVector<std::uint16_t> plain_q =
      AlignedVector<std::uint16_t>(k.type == DataType::kBF16 ? static_cast<std::size_t>(4 * job.q.features) : 0);
  Queries16 q_16 = {};  // empty: keys are multiplied in f32
  // weights of two bf16 are good for a result of bf16, not of f32
  bool adds_16 =
      v.type == DataType::kBF16 && job.out.type == DataType::kBF16 && job.v.features % 8 == 0 && has_bf16_dots();
#endif
#if POSENC_NATIVE_16
  AlignedVector<std::uint16_t> weights_16 =
      AlignedVector<std::uint16_t>(adds_16 && rows >= 4 ? static_cast<std::size_t>(8 * block) : 0);  // of four rows
#endif
  std::int64_t stride = block + kMostLanes;  // of a row of scores: vectors may go past its last
  AlignedVector<float> scores = AlignedVector<float>(static_cast<std::size_t>(rows * stride));
  AlignedVector<float> rescale = AlignedVector<float>(static_cast<std::size_t>(rows));

  std::int64_t head(std::int64_t r) const { return chunk.g * job.group + r / job.q.sequence; }
  std::int64_t query(std::int64_t r) const { return r % job.q.sequence; }
};

// Softcap, bias and mask, then a step of the online softmax for the keys `low` to `high` of a block from `key` on.
void weigh_row(ChunkPass& pass, std::int64_t r, std::int64_t key, std::int64_t low, std::int64_t high) {
  const AttentionJob& job = pass.job;
  const std::int64_t h = pass.head(r), i = pass.query(r), count = high - low;
  float* const scores = pass.scores.data() + r * pass.stride + (low - key);
  if (job.softcap > 0) {
    const auto cap = static_cast<float>(job.softcap * kLog2E);
    for (std::int64_t j = 0; j < count; j += lanes()) {
      hn::StoreU(cap_of(DF(), hn::LoadU(DF(), scores + j), cap), DF(), scores + j);
    }
  }
  add_biases(job, pass.bias, {pass.chunk.b, h, i, 1, low, count}, scores);
  if (job.has_masks()) {
    for (std::int64_t j = 0; j < count; ++j) {
      if (job.is_hidden(pass.chunk.b, h, i, low + j)) {
        scores[j] = -std::numeric_limits<float>::infinity();
      } else if (job.mask.data != nullptr) {
        scores[j] += static_cast<float>(kLog2E * job.mask.at(pass.chunk.b, h, i, low + j));
      }
    }
  }
  pass.rescale[static_cast<std::size_t>(r)] = online_softmax(scores, count, pass.chunk.parts[r]);
}

// The values of one query's keys, and nothing of those that it does not see: 0 times a NaN is not 0.
template <class V>
HWY_INLINE void add_values(ChunkPass& pass, std::int64_t r, std::int64_t key, std::int64_t low, std::int64_t high) {
  const AttentionJob& job = pass.job;
  const std::int64_t features = job.v.features;
  const float* const weights = pass.scores.data() + r * pass.stride + (low - key);
  const void* const* const values = pass.v.rows + (low - key);
  float* const sums = pass.chunk.sums + r * features;
  const float rescale = pass.rescale[static_cast<std::size_t>(r)];
  if (!job.has_masks()) {
    add_rows<V>(weights, values, high - low, features, rescale, sums);
    return;
  }
  add_rows<V>(weights, values, 0, features, rescale, sums);
  for (std::int64_t j = 0; j < high - low; ++j) {
    if (job.is_hidden(pass.chunk.b, pass.head(r), pass.query(r), low + j)) continue;
    add_rows<V>(weights + j, values + j, 1, features, 1.0f, sums);
  }
}

void score_block(ChunkPass& pass, std::int64_t count) {
  const std::int64_t features = pass.job.q.features;
#if POSENC_NATIVE_16
  if (pass.q_16.narrow != nullptr || pass.q_16.wide != nullptr) {
    score_rows_16(pass.q_16, pass.rows, pass.k.rows, count, features, pass.scores.data(), pass.stride);
    return;
  }
#endif
  with_rows(pass.k, [&](auto kind) HWY_ATTR {
    score_rows<decltype(kind)>(pass.q.data(), pass.rows, pass.k.rows, count, features, pass.scores.data(),
                               pass.stride);
  });
}

// The values of a block that every query sees whole.
void add_block(ChunkPass& pass, std::int64_t count) {
  const std::int64_t features = pass.job.v.features;
  float* const weights = pass.scores.data();
#if POSENC_NATIVE_16
  if (pass.adds_16) {
    const std::int64_t room = (count + 3) / 4 * 4;
    for (std::int64_t r = 0; r < pass.rows;) {
      float* const sums = pass.chunk.sums + r * features;
      float* const row = weights + r * pass.stride;
      const float* const rescale = pass.rescale.data() + r;
      const bool are_four = r + 4 <= pass.rows;
      if (are_four) {
        pack_weights_4(row, pass.stride, count, pass.weights_16.data());
        add_rows_16_4(pass.weights_16.data(), pass.v.rows, count, features, rescale, sums);
      } else {
        pass.v.rows[count] = pass.v.rows[count - 1];  // with a weight of 0, where the count is odd
        split_weights(row, count, room);
        add_rows_16(row, room, pass.v.rows, count, features, *rescale, sums);
      }
      r += are_four ? 4 : 1;
    }
    return;
  }
#endif
  const std::int64_t together = features % (2 * lanes()) == 0 ? pass.rows / 4 * 4 : 0;
  with_rows(pass.v, [&](auto kind) HWY_ATTR {
    using V = decltype(kind);
    for (std::int64_t r = 0; r < together; r += 4) {
      add_rows_4<V>(weights + r * pass.stride, pass.stride, pass.v.rows, count, features, pass.rescale.data() + r,
                    pass.chunk.sums + r * features);
    }
    for (std::int64_t r = together; r < pass.rows; ++r) {
      add_rows<V>(weights + r * pass.stride, pass.v.rows, count, features, pass.rescale[static_cast<std::size_t>(r)],
                  pass.chunk.sums + r * features);
    }
  });
}

void attend_block(ChunkPass& pass, std::int64_t key, std::int64_t end) {
  const AttentionJob& job = pass.job;
  pass.k.load(pass.chunk.b, pass.chunk.g, key, end);
  pass.v.load(pass.chunk.b, pass.chunk.g, key, end);
  score_block(pass, end - key);
  const auto low_of = [&](std::int64_t r) { return std::max(key, job.sight(pass.chunk.b, pass.query(r)).begin); };
  const auto high_of = [&](std::int64_t r) { return std::min(end, job.sight(pass.chunk.b, pass.query(r)).end); };
  bool all_see_all = !job.has_masks();
  for (std::int64_t r = 0; r < pass.rows; ++r) {
    const std::int64_t low = low_of(r), high = high_of(r);
    if (low != key || high != end) all_see_all = false;
    if (low < high) weigh_row(pass, r, key, low, high);
  }
  if (all_see_all) {
    add_block(pass, end - key);
    return;
  }
  with_rows(pass.v, [&](auto kind) HWY_ATTR {
    using V = decltype(kind);
    for (std::int64_t r = 0; r < pass.rows; ++r) {
      if (low_of(r) < high_of(r)) add_values<V>(pass, r, key, low_of(r), high_of(r));
    }
  });
}

#if POSENC_NATIVE_16
// Queries that have the keys' type and were not rotated meet keys as they are; the factor comes later. One to three others
// are arranged for keys of bf16 that are widened, and more meet them four at a time (score_rows).
void plan_queries_16(ChunkPass& pass, float factor) {
  bool are_narrow = true;
  if (pass.k.type == DataType::kF16) {
    for (std::size_t i = 0; i < pass.q.size(); ++i) {
      const Half narrow = numerics::narrow<Half>(static_cast<double>(pass.q[i]));
      pass.narrow_q[i] = std::bit_cast<std::uint16_t>(narrow);
      are_narrow = are_narrow && numerics::widen(narrow) == static_cast<double>(pass.q[i]);
    }
    if (are_narrow) pass.q_16 = {pass.narrow_q.data(), true, nullptr, factor};
    return;
  }
  for (std::size_t i = 0; i < pass.q.size(); ++i) {
    const auto bits = std::bit_cast<std::uint32_t>(pass.q[i]);
    pass.narrow_q[i] = static_cast<std::uint16_t>(bits >> 16);
    are_narrow = are_narrow && (bits & 0xFFFFU) == 0;
  }
  if (are_narrow) {
    const std::int64_t features = pass.job.q.features;
    for (std::int64_t r = 0; r + 4 <= pass.rows; r += 4) {
      std::uint16_t* const four = pass.narrow_q.data() + r * features;
      std::copy(four, four + 4 * features, pass.plain_q.begin());
      pair_rows(pass.plain_q.data(), pass.plain_q.data() + features, features, four);
      pair_rows(pass.plain_q.data() + 2 * features, pass.plain_q.data() + 3 * features, features,
                four + 2 * features);
    }
    pass.q_16 = {pass.narrow_q.data(), false, nullptr, factor};
  } else if (pass.rows < kFewRows) {
    for (std::size_t i = 0; i < pass.q.size(); i += 8) {
      const float* const x = pass.q.data() + i;
      const float apart[] = {x[0], x[2], x[4], x[6], x[1], x[3], x[5], x[7]};
      std::copy(apart, apart + 8, pass.q.begin() + static_cast<std::ptrdiff_t>(i));
    }
    pass.q_16 = {nullptr, false, pass.q.data(), 1.0f};
  }
}
#endif

void attend_chunk(const AttentionJob& job, const ScoreBias& bias, const Chunk& whole) {
  // keys that no query sees are not read: past a length, outside a window
  const Sight seen = job.seen_keys(whole.b);
  Chunk chunk = whole;
  chunk.begin = std::max(whole.begin, seen.begin);
  chunk.end = std::min(whole.end, seen.end);
  if (chunk.begin >= chunk.end && kernels::counter_in_use() == nullptr) return;
  ChunkPass pass{job, bias, chunk};
  if (kernels::counter_in_use() != nullptr) {  // only memory is asked for
    kernels::take_and_give(rotation_scratch(job));
    return;
  }
  for (std::int64_t r = 0; r < pass.rows; ++r) {
    const std::int64_t i = pass.query(r);
    load_rows(job.q, job.q_rotation, chunk.b, pass.head(r), i, i + 1, job.q.features,
              pass.q.data() + r * job.q.features);
  }
  const auto factor = static_cast<float>(job.scale * kLog2E);
#if POSENC_NATIVE_16
  const bool has_dots =
      pass.k.type == DataType::kBF16 ? has_bf16_dots() : pass.k.type == DataType::kF16 && has_f16_products();
  if (has_dots && job.q.features % 8 == 0) plan_queries_16(pass, factor);
  if (pass.q_16.narrow == nullptr)
#endif
  {
    for (float& x : pass.q) x *= factor;
  }
  for (std::int64_t key = chunk.begin; key < chunk.end; key += pass.block) {
    attend_block(pass, key, std::min(key + pass.block, chunk.end));
  }
}

}  // namespace posenc::attend::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace posenc::attend::cpu {
namespace {

HWY_EXPORT(attend_chunk);

// Merges the chunks of one row, in order.
void write_row(const AttentionJob& job, std::int64_t b, std::int64_t h, std::int64_t i,
               const AlignedVector<Part>& parts, const AlignedVector<float>& sums, std::int64_t first,
               std::int64_t step, std::int64_t chunks) {
  const float none = -std::numeric_limits<float>::infinity();
  const float sink = job.sinks == nullptr ? none : static_cast<float>(job.sinks[h] * kLog2E);
  float largest = sink == sink ? sink : none;
  bool is_number = sink == sink;
  for (std::int64_t c = 0; c < chunks; ++c) {
    const Part& part = parts[static_cast<std::size_t>(first + c * step)];
    if (part.row_sum != part.row_sum) is_number = false;
    largest = std::max(largest, part.row_max);
  }
  const std::int64_t features = job.v.features;
  AlignedVector<double> row(static_cast<std::size_t>(features), 0.0);
  double total = sink == none ? 0.0 : std::exp2(static_cast<double>(sink) - static_cast<double>(largest));
  for (std::int64_t c = 0; c < chunks; ++c) {
    const std::int64_t at = first + c * step;
    const Part& part = parts[static_cast<std::size_t>(at)];
    if (part.row_sum == 0.0f) continue;
    const double weight = std::exp2(static_cast<double>(part.row_max) - static_cast<double>(largest));
    total += weight * static_cast<double>(part.row_sum);
    for (std::int64_t f = 0; f < features; ++f) {
      row[static_cast<std::size_t>(f)] +=
          weight * static_cast<double>(sums[static_cast<std::size_t>(at * features + f)]);
    }
  }
  if (!is_number) total = std::numeric_limits<double>::quiet_NaN();
  kernels::with_type(job.out.type, [&](auto kind) {
    using T = decltype(kind);
    T* out = job.out.row<T>(b, h, i);
    for (std::int64_t f = 0; f < features; ++f) {
      const double value = total == 0 ? 0.0 : row[static_cast<std::size_t>(f)] / total;
      out[f * job.out.feature_stride] = numerics::narrow<T>(value);
    }
  });
  if (job.logsumexp.data == nullptr) return;
  *job.logsumexp.row<float>(b, h, i) =
      static_cast<float>(total == 0 ? std::log2(total) : (static_cast<double>(largest) + std::log2(total)) / kLog2E);
}

}  // namespace

bool is_decoding(const AttentionJob& job, const ScoreBias& bias) {
  const std::int64_t rows = job.group * job.q.sequence;
  const bool are_few = rows <= kFewDecodeRows || (rows <= kMostDecodeRows && job.q.sequence <= kMostDecodeQueries);
  return are_few && bias.query_rows == 0 && bias.key_rows == 0 && bias.value_rows == 0;
}

void decode(const AttentionJob& job, const ScoreBias& bias) {
  const std::int64_t rows = job.group * job.q.sequence, heads = job.q.batch * job.k.heads;
  // a window costs its window: chunks that no query sees are left out
  std::int64_t first_chunk = std::numeric_limits<std::int64_t>::max(), last_chunk = 0;
  for (std::int64_t b = 0; b < job.k.batch; ++b) {
    const Sight seen = job.seen_keys(b);
    if (seen.begin >= seen.end) continue;
    first_chunk = std::min(first_chunk, seen.begin / kChunk);
    last_chunk = std::max(last_chunk, (seen.end + kChunk - 1) / kChunk);
  }
  const std::int64_t chunks = std::max<std::int64_t>(last_chunk - first_chunk, 0);
  AlignedVector<Part> parts(static_cast<std::size_t>(heads * chunks * rows),
                            {-std::numeric_limits<float>::infinity(), 0.0f});
  AlignedVector<float> sums(parts.size() * static_cast<std::size_t>(job.v.features), 0.0f);
  kernels::cpu::parallel_for(heads * chunks, 1, [&](std::int64_t begin, std::int64_t end) {
    // every chunk takes as much as the first, and gives it back
    if (kernels::counter_in_use() != nullptr) end = std::min(end, begin + 1);
    for (std::int64_t at = begin; at < end; ++at) {
      const std::int64_t head = at / chunks, first = (first_chunk + at % chunks) * kChunk;
      HWY_DYNAMIC_DISPATCH(attend_chunk)
      (job, bias,
       {head / job.k.heads, head % job.k.heads, first, std::min(first + kChunk, job.k.sequence),
        parts.data() + at * rows, sums.data() + at * rows * job.v.features});
    }
  });
  if (kernels::counter_in_use() != nullptr) {  // only memory is asked for
    kernels::take_and_give(static_cast<std::size_t>(job.v.features) * sizeof(double));
    return;
  }
  for (std::int64_t head = 0; head < heads; ++head) {
    for (std::int64_t r = 0; r < rows; ++r) {
      write_row(job, head / job.k.heads, head % job.k.heads * job.group + r / job.q.sequence, r % job.q.sequence,
                parts, sums, head * chunks * rows + r, rows, chunks);
    }
  }
}

}  // namespace posenc::attend::cpu
#endif
