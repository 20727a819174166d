// Flash-Decoding (Dao et al., 2023): few queries and many keys, so that the time goes into reading the cache, and
// every key and value is read once, as it lies in memory. Keys are split into chunks of a fixed size (split-KV); each
// runs its own online softmax over key blocks and leaves row_max, row_sum and an output accumulator for every query,
// which are merged in the order of the chunks, so that results do not depend on threads. The query heads that share a
// key head (GQA) share its reading.

#include "attention/cpu/decode.h"

#include <cmath>
#include <limits>

#include "attention/bias_element.h"
#include "kernels/cpu/parallel.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "attention/cpu/decode.cpp"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "hwy/highway.h"

// after foreach_target.h, so that they are compiled for each target
#include "attention/cpu/exp2-inl.h"
#include "attention/cpu/pack-inl.h"
#include "attention/cpu/panel-inl.h"

#ifndef POSENC_DECODE_CHUNK
#define POSENC_DECODE_CHUNK
namespace posenc::attend::cpu {

constexpr std::int64_t kChunk = 2048, kDecodeBlock = 64;

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

// Two dot products of one vector with neighbouring rows: of two, four and eight rows at once, two come nearest to the
// speed of memory.
HWY_INLINE void dot_pair(const float* HWY_RESTRICT q, const float* HWY_RESTRICT k, std::int64_t stride,
                         std::int64_t features, float* HWY_RESTRICT out) {
  const DF d;
  VF s0 = hn::Zero(d), s1 = s0;
  std::int64_t f = 0;
  for (; f + lanes() <= features; f += lanes()) {
    const VF x = hn::LoadU(d, q + f);
    s0 = hn::MulAdd(x, hn::LoadU(d, k + f), s0);
    s1 = hn::MulAdd(x, hn::LoadU(d, k + stride + f), s1);
  }
  out[0] = hn::GetLane(hn::SumOfLanes(d, s0));
  out[1] = hn::GetLane(hn::SumOfLanes(d, s1));
  for (; f < features; ++f) {
    out[0] += q[f] * k[f];
    out[1] += q[f] * k[stride + f];
  }
}
HWY_INLINE float dot_row(const float* HWY_RESTRICT q, const float* HWY_RESTRICT k, std::int64_t features) {
  const DF d;
  VF s = hn::Zero(d);
  std::int64_t f = 0;
  for (; f + lanes() <= features; f += lanes()) s = hn::MulAdd(hn::LoadU(d, q + f), hn::LoadU(d, k + f), s);
  float sum = hn::GetLane(hn::SumOfLanes(d, s));
  for (; f < features; ++f) sum += q[f] * k[f];
  return sum;
}

#define POSENC_EACH(DO) \
  DO(0) DO(1) DO(2) DO(3) DO(4) DO(5) DO(6) DO(7) DO(8) DO(9) DO(10) DO(11) DO(12) DO(13) DO(14) DO(15)
#define POSENC_START(i) VF s##i = hn::Zero(d);
#define POSENC_STEP(i) s##i = hn::MulAdd(w, hn::LoadU(d, row + (i)*n), s##i);
#define POSENC_END(i) hn::StoreU(hn::MulAdd(hn::LoadU(d, sums + f + (i)*n), by, s##i), d, sums + f + (i)*n);
// sums[f] = sums[f] · rescale + Σ weight[j] · v[j, f]. Sixteen vectors at once: with fewer, rows of 64 features would
// be passed over twice, at less than half the speed.
HWY_INLINE void add_rows(const float* HWY_RESTRICT weights, const float* HWY_RESTRICT v, std::int64_t stride,
                         std::int64_t count, std::int64_t features, float rescale, float* HWY_RESTRICT sums) {
  const DF d;
  const std::int64_t n = lanes();
  const VF by = hn::Set(d, rescale);
  std::int64_t f = 0;
  for (; f + 16 * n <= features; f += 16 * n) {
    POSENC_EACH(POSENC_START)
    const float* HWY_RESTRICT row = v + f;
    for (std::int64_t j = 0; j < count; ++j, row += stride) {
      const VF w = hn::Set(d, weights[j]);
      POSENC_EACH(POSENC_STEP)
    }
    POSENC_EACH(POSENC_END)
  }
  // where vectors are long, a row has fewer
  for (; f + 4 * n <= features; f += 4 * n) {
    POSENC_START(0) POSENC_START(1) POSENC_START(2) POSENC_START(3) const float* HWY_RESTRICT row = v + f;
    for (std::int64_t j = 0; j < count; ++j, row += stride) {
      const VF w = hn::Set(d, weights[j]);
      POSENC_STEP(0) POSENC_STEP(1) POSENC_STEP(2) POSENC_STEP(3)
    }
    POSENC_END(0) POSENC_END(1) POSENC_END(2) POSENC_END(3)
  }
  for (; f + n <= features; f += n) {
    VF s = hn::Zero(d);
    for (std::int64_t j = 0; j < count; ++j)
      s = hn::MulAdd(hn::Set(d, weights[j]), hn::LoadU(d, v + j * stride + f), s);
    hn::StoreU(hn::MulAdd(hn::LoadU(d, sums + f), by, s), d, sums + f);
  }
  for (; f < features; ++f) {
    float s = 0;
    for (std::int64_t j = 0; j < count; ++j) s += weights[j] * v[j * stride + f];
    sums[f] = sums[f] * rescale + s;
  }
}

#undef POSENC_EACH
#undef POSENC_START
#undef POSENC_STEP
#undef POSENC_END

// Biases for one query and keys from `key` on, added to the scores.
HWY_INLINE void add_biases(const AttentionJob& job, const ScoreBias& bias, const TilePlace& place,
                           float* HWY_RESTRICT scores) {
  using Kind = ScoreBias::Kind;
  if (bias.kind == Kind::kNone) return;
  const std::int64_t x = job.sight(place.b, place.first_query).beside + job.places.shift - place.first_key;
  const auto h = static_cast<std::size_t>(place.h);
  if (bias.kind == Kind::kSlope) {
    for (std::int64_t j = 0; j < place.keys; ++j) {
      scores[j] += bias.slopes[h] * std::fabs(static_cast<float>(x - j));
    }
  } else if (bias.kind == Kind::kDistance) {
    const DistanceRow& row = bias.rows[h];
    for (std::int64_t j = 0; j < place.keys; ++j) scores[j] += row.at(std::clamp(x - j, row.low, row.high));
  } else {
    HWY_ALIGN float tile[kDecodeBlock];
    fill_tile(job, place, tile, 1, 0);
    for (std::int64_t j = 0; j < place.keys; ++j) scores[j] += tile[j];
  }
}

// One step of the online softmax: scores become weights below the new row maximum. Returns the factor that rescales
// the accumulator.
HWY_INLINE float online_softmax(float* HWY_RESTRICT scores, std::int64_t count, Part& part) {
  const DF d;
  HWY_ALIGN float padded[kDecodeBlock + 16];
  float largest = part.row_max;
  for (std::int64_t j = 0; j < count; ++j) {
    largest = scores[j] > largest ? scores[j] : largest;
    padded[j] = scores[j];
  }
  std::fill(padded + count, padded + kDecodeBlock + 16, -std::numeric_limits<float>::infinity());
  const float safe = largest == -std::numeric_limits<float>::infinity() ? 0.0f : largest;
  VF total = hn::Zero(d);
  for (std::int64_t j = 0; j < kDecodeBlock; j += lanes()) {
    const VF p = exp2_of_negative(d, hn::Sub(hn::LoadU(d, padded + j), hn::Set(d, safe)));
    hn::StoreU(p, d, padded + j);
    total = hn::Add(total, p);
  }
  const float rescale = hn::GetLane(exp2_of_negative(d, hn::Set(d, part.row_max - safe)));
  std::copy(padded, padded + count, scores);
  part.row_max = largest;
  part.row_sum = part.row_sum * rescale + hn::GetLane(hn::SumOfLanes(d, total));
  return rescale;
}

void attend_chunk(const AttentionJob& job, const ScoreBias& bias, const Chunk& whole) {
  // keys that no query looks at are not read: past a length, outside a window
  const Sight seen = job.seen_keys(whole.b);
  Chunk chunk = whole;
  chunk.begin = std::max(whole.begin, seen.begin);
  chunk.end = std::min(whole.end, seen.end);
  if (chunk.begin >= chunk.end) return;
  const std::int64_t features = job.q.features, value_features = job.v.features;
  const std::int64_t rows = job.group * job.q.sequence;
  const bool k_in_place =
      job.k.type == DataType::kF32 && job.k.feature_stride == 1 && job.k_rotation.cos_sin == nullptr;
  const bool v_in_place = job.v.type == DataType::kF32 && job.v.feature_stride == 1;
  std::vector<float> q(static_cast<std::size_t>(rows * features));
  std::vector<float> k(k_in_place ? 0 : static_cast<std::size_t>(kDecodeBlock * features));
  std::vector<float> v(v_in_place ? 0 : static_cast<std::size_t>(kDecodeBlock * value_features));
  const auto factor = static_cast<float>(job.scale * kLog2E);
  for (std::int64_t r = 0; r < rows; ++r) {
    const std::int64_t h = chunk.g * job.group + r / job.q.sequence, i = r % job.q.sequence;
    load_rows(job.q, job.q_rotation, chunk.b, h, i, i + 1, features, q.data() + r * features);
  }
  for (float& x : q) x *= factor;
  HWY_ALIGN float scores[kDecodeBlock];
  for (std::int64_t key = chunk.begin; key < chunk.end; key += kDecodeBlock) {
    const std::int64_t end = std::min(key + kDecodeBlock, chunk.end);
    const float* keys = k.data();
    const float* values = v.data();
    std::int64_t k_stride = features, v_stride = value_features;
    if (k_in_place) {
      keys = job.k.row<float>(chunk.b, chunk.g, key);
      k_stride = job.k.token_stride;
    } else {
      load_rows(job.k, job.k_rotation, chunk.b, chunk.g, key, end, features, k.data());
    }
    if (v_in_place) {
      values = job.v.row<float>(chunk.b, chunk.g, key);
      v_stride = job.v.token_stride;
    } else {
      pack_rows(job.v, chunk.b, chunk.g, key, end, value_features, v.data());
    }
    for (std::int64_t r = 0; r < rows; ++r) {
      const std::int64_t h = chunk.g * job.group + r / job.q.sequence, i = r % job.q.sequence;
      const Sight& sight = job.sight(chunk.b, i);
      const std::int64_t low = std::max(key, sight.begin), high = std::min(end, sight.end), count = high - low;
      if (count <= 0) continue;
      const float* first = keys + (low - key) * k_stride;
      std::int64_t j = 0;
      for (; j + 2 <= count; j += 2) {
        dot_pair(q.data() + r * features, first + j * k_stride, k_stride, features, scores + j);
      }
      for (; j < count; ++j) scores[j] = dot_row(q.data() + r * features, first + j * k_stride, features);
      add_biases(job, bias, {chunk.b, h, i, 1, low, count}, scores);
      for (j = 0; j < count && job.key_mask != nullptr; ++j) {
        if (job.is_masked(chunk.b, low + j)) scores[j] = -std::numeric_limits<float>::infinity();
      }
      const float rescale = online_softmax(scores, count, chunk.parts[r]);
      float* sums = chunk.sums + r * value_features;
      const float* first_value = values + (low - key) * v_stride;
      if (job.key_mask == nullptr) {
        add_rows(scores, first_value, v_stride, count, value_features, rescale, sums);
        continue;
      }
      add_rows(scores, first_value, v_stride, 0, value_features, rescale, sums);
      for (j = 0; j < count; ++j) {  // a masked value is not seen, also where 0 times it is not 0
        if (job.is_masked(chunk.b, low + j)) continue;
        add_rows(scores + j, first_value + j * v_stride, v_stride, 1, value_features, 1.0f, sums);
      }
    }
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
               const std::vector<Part>& parts, const std::vector<float>& sums, std::int64_t first, std::int64_t step,
               std::int64_t chunks) {
  float largest = -std::numeric_limits<float>::infinity();
  bool is_number = true;
  for (std::int64_t c = 0; c < chunks; ++c) {
    const Part& part = parts[static_cast<std::size_t>(first + c * step)];
    if (part.row_sum != part.row_sum) is_number = false;
    largest = std::max(largest, part.row_max);
  }
  const std::int64_t features = job.v.features;
  std::vector<double> row(static_cast<std::size_t>(features), 0.0);
  double total = 0;
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
  return job.group * job.q.sequence <= kMostDecodeRows && bias.query_rows == 0 && bias.key_rows == 0;
}

void decode(const AttentionJob& job, const ScoreBias& bias) {
  const std::int64_t rows = job.group * job.q.sequence, heads = job.q.batch * job.k.heads;
  const std::int64_t chunks = (job.k.sequence + kChunk - 1) / kChunk;
  std::vector<Part> parts(static_cast<std::size_t>(heads * chunks * rows),
                          {-std::numeric_limits<float>::infinity(), 0.0f});
  std::vector<float> sums(parts.size() * static_cast<std::size_t>(job.v.features), 0.0f);
  kernels::cpu::parallel_for(heads * chunks, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t at = begin; at < end; ++at) {
      const std::int64_t head = at / chunks, first = at % chunks * kChunk;
      HWY_DYNAMIC_DISPATCH(attend_chunk)
      (job, bias,
       {head / job.k.heads, head % job.k.heads, first, std::min(first + kChunk, job.k.sequence),
        parts.data() + at * rows, sums.data() + at * rows * job.v.features});
    }
  });
  for (std::int64_t head = 0; head < heads; ++head) {
    for (std::int64_t r = 0; r < rows; ++r) {
      write_row(job, head / job.k.heads, head % job.k.heads * job.group + r / job.q.sequence, r % job.q.sequence,
                parts, sums, head * chunks * rows + r, rows, chunks);
    }
  }
}

}  // namespace posenc::attend::cpu
#endif
