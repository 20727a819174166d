#pragma once

// The parameters that the host passes to kernels: plain values, the same for both compilers. Pointers are to device
// memory.

#include <cstdint>

namespace posenc::kernels::cuda {

/// Division by a number known to the host: n / divisor = n · multiplier >> (31 + shift) for n below 2^31, because
/// multiplier / 2^(31 + shift) exceeds 1 / divisor by less than 2^-31 / divisor.
struct Divisor {
  std::uint32_t divisor, multiplier, shift;
};
constexpr Divisor divisor_of(std::int64_t divisor) {
  std::uint32_t shift = 0;
  while ((std::int64_t{1} << shift) < divisor) ++shift;
  const std::uint64_t most = (std::uint64_t{1} << (31 + shift)) + static_cast<std::uint64_t>(divisor) - 1;
  return {static_cast<std::uint32_t>(divisor), static_cast<std::uint32_t>(most / static_cast<std::uint64_t>(divisor)),
          shift};
}

/// The values of DataType, which kernels switch on.
enum Type : std::int32_t { kTypeF32, kTypeF64, kTypeF16, kTypeBF16 };

/// Errors that kernels discover only while they run: stored in memory shared by host and device, and read after a
/// wait.
struct Fault {
  /// kLength, kPage, kSlot: `position` is the value found, `column` its exclusive upper limit.
  enum Kind : std::uint32_t { kNone, kUndecided, kPosition, kLength, kPage, kSlot };
  std::uint32_t kind;
  std::int64_t position, column;
};

/// TokenPositions. `checked`: by the host; otherwise kernels reject positions out of range.
struct PositionParams {
  std::int64_t first;
  const std::int64_t* ids;  // null: consecutive
  std::int64_t batch_stride, axis_stride;
  std::int64_t limit;  // positions from here on are an error
};

struct FrequencyWords {
  std::uint64_t words[4];
};
/// Only its two upper words, which suffice for nearly every value.
struct alignas(16) FrequencyTop {
  std::uint64_t low, high;
};
struct BlendParams {
  float divisor, scale, kept;
};

/// Waves, as in forms.h.
struct WaveParams {
  const FrequencyWords* frequencies;  // one per wave
  const FrequencyTop* tops;           // the same
  const std::uint8_t* axes;           // null: the first axis drives all waves
  const float* factors;               // for float32 angles; null: exact
  const BlendParams* blends;          // null: none
  std::int64_t chain;
  double scale;
};

/// A table of rows: Rows, RotationTable.
struct TableParams {
  const void* data;
  std::int32_t type;
  std::int64_t batch_stride, row_stride, column_stride;  // in elements
};

/// TokenTensor.
struct TokenParams {
  void* data;
  std::int32_t type, lead_rank;
  std::int64_t lead_shape[6], lead_strides[6];
  std::int64_t batch, sequence, width, token_stride, column_stride;
};

enum AddSource : std::int32_t { kFromWaves, kFromRows, kFromLines };

/// out = vectors, or x + vectors.
struct AddParams {
  TokenParams out, x;  // x.data null: only the vectors
  PositionParams positions;
  std::int32_t source;
  WaveParams waves;
  const std::uint32_t* columns;  // wave · 4 + quarter
  TableParams rows;
  std::int64_t offset;  // of rows
  const double *start, *step;
  // For the whole-vector kernel: sequences that share one vector, blocks per line, lines per group.
  std::int32_t together;
  Divisor across, by_sequence;
  std::uint32_t quarters[2];  // of the two columns of every wave, if adjacent
  Fault* fault;
};

/// From one row to the next: the wave's own step; its sine has the sign that takes the first column to the second.
struct StepParams {
  double cosine, sine;
};
/// A table of float32 waves at consecutive positions, two columns for each wave.
struct TableRowsParams {
  float* out;
  std::int64_t batch_stride, token_stride, sequence;
  std::int64_t first;
  WaveParams waves;
  std::int64_t wave_count;
  std::uint32_t quarters[2];
  const StepParams* steps;
  Divisor across, by_tiles;
  Fault* fault;
};

struct AddBackwardParams {
  TokenParams table, gradient;
  PositionParams positions;
  std::int64_t offset;
  Fault* fault;
};

/// HeadTensor.
struct HeadParams {
  void* data;
  std::int32_t type;
  std::int64_t batch_stride, head_stride, token_stride, feature_stride;
};

/// SlotList.
struct SlotParams {
  const std::int64_t* ids;
  const std::int32_t* narrow_ids;  // in place of ids; both null: none
  std::int64_t limit;              // slots from here on are an error
};
/// Norm.
struct NormParams {
  const void* weight;  // null: no norm
  std::int32_t type, over_heads;
  std::int64_t head_stride, feature_stride;
  double epsilon, offset;
};

struct RotatePart {
  HeadParams out, x;
  std::int64_t heads, features, first;
  std::int32_t keys;
  std::int32_t rotates;
  std::int32_t to_slots, from_slots;  // out or x is a cache, and batch_stride is that of its pages
  std::int64_t page_tokens;
  NormParams norm;
  // For the whole-vector kernels: teams per token, and strides of x and out that fit in 32 bits.
  Divisor across;
  std::int32_t x_strides[3], out_strides[3];  // batch, head, token
  // For append_vectors: a head is `lanes` lanes wide, of which the first ones rotate, and a warp holds `step` heads.
  std::uint32_t lanes, rotating_lanes, step, lane_reciprocal;
  Divisor by_page;
};
struct RotateParams {
  RotatePart parts[3];  // rotate has one or two
  std::int32_t count;
  std::int64_t batch, sequence;
  PositionParams positions;
  WaveParams waves;
  TableParams cosines, sines;  // data null: waves
  std::int32_t by_token;       // the table has a row for each token
  std::int32_t sign;
  float late_magnitude;
  const double* rates;  // of growth; null: none
  double magnitude;
  std::int64_t centre;
  std::int64_t pairs, in_block;
  std::int64_t read_step, read_apart, write_step, write_apart;
  std::int32_t table_type, arithmetic_type;
  std::int32_t moves;  // pairs are not written where they are read
  std::int32_t chunk;  // pairs computed at a time
  // For the whole-vector kernel: a head is `lanes` lanes wide, and a warp holds `step` heads.
  std::uint32_t lanes, step, lane_reciprocal;
  Divisor by_sequence;
  std::int32_t in_place, interleaved;
  SlotParams slots;
  SlotParams others;  // if given: a token also needs a slot here
  Fault* fault;
  float* made;  // [sequence, 2 · pairs]: receives the cosines and sines of the first sequence; null: not requested
};

enum BiasSource : std::int32_t { kBiasSlopes, kBiasTable, kBiasRatios };
struct BiasParams {
  HeadParams scores;  // written, or their gradient
  std::int64_t batch, heads, queries, keys;
  PositionParams query_positions, key_positions;
  std::int32_t kind;
  const double* slopes;
  TableParams table;
  std::int32_t axes;
  std::int64_t map_first[8], map_size[8];
  const std::int64_t* map_entries[8];
  const double *logs, *hidden_weights, *hidden_biases, *output_weights, *output_biases;
  std::int64_t width;
  double least, epsilon;
};
/// A head has `count` sums: one for its slope, `owned` for the rows of a table, 3 · owned + 1 for a learned map with
/// that many hidden units.
struct BiasBackwardParams {
  BiasParams bias;
  double* parts;  // [shares, heads, count]
  std::int64_t count, owned, shares, queries_of_share;
  std::int32_t owners;  // a power of two, at most 256
  void* gradient;       // of the parameters, added to
  std::int32_t type;
  std::int64_t parameters, row_stride, head_stride;
};

}  // namespace posenc::kernels::cuda
