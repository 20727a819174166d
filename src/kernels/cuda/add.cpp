// add, tabulate and add_backward: choose a kernel and fill in its parameters.

#include <cmath>

#include "kernels/cuda/call.h"
#include "numerics/wave.h"

namespace posenc::kernels::cuda {

Outcome add(const AddJob& job);
void add_backward(const AddBackwardJob& job);

namespace {

constexpr std::int64_t kMostRows = 8;  // of the whole-vector kernel

bool is_whole(std::int64_t elements, DataType type) { return elements * size_of(type) % 16 == 0; }
bool is_aligned(const void* data) { return reinterpret_cast<std::uintptr_t>(data) % 16 == 0; }

/// Whether every 16-byte vector of a row is aligned.
bool has_whole_vectors(const TokenParams& x, DataType type) {
  bool whole =
      is_aligned(x.data) && x.column_stride == 1 && is_whole(x.width, type) && is_whole(x.token_stride, type);
  for (int axis = 0; axis < x.lead_rank; ++axis) whole = whole && is_whole(x.lead_strides[axis], type);
  return whole;
}

/// Columns in pairs: the two of a wave adjacent, or all first ones before all second ones.
struct ColumnPairs {
  bool found = false, halves = false;
  std::uint32_t quarters[2] = {0, 0};
};
ColumnPairs pairs_of(const Waves& waves) {
  const std::size_t count = waves.waves.size();
  if (count == 0 || waves.columns.size() != 2 * count) return {};
  for (const bool halves : {false, true}) {
    const auto column = [&](std::size_t wave, std::size_t second) {
      return waves.columns[halves ? wave + second * count : 2 * wave + second];
    };
    ColumnPairs pairs{true, halves, {column(0, 0).quarter, column(0, 1).quarter}};
    for (std::size_t w = 0; w < count && pairs.found; ++w) {
      for (const std::size_t second : {std::size_t{0}, std::size_t{1}}) {
        const WaveColumn one = column(w, second);
        if (one.wave != static_cast<std::int32_t>(w) || one.quarter != pairs.quarters[second]) pairs.found = false;
      }
    }
    if (pairs.found) return pairs;
  }
  return {};
}

/// What kernels read of a form of waves; each thread remembers the last one.
struct WaveCopies {
  std::uint64_t number = 0;  // of the waves
  std::size_t count = 0;
  Float32Angles angles;
  double scale = 0;
  Context context = nullptr;
  std::uint64_t generation = 0;

  WaveParams waves{};
  const std::uint32_t* columns = nullptr;
  const StepParams* steps = nullptr;  // null: no table of pairs
  ColumnPairs pairs;
};

const WaveCopies& copies_of(Call& call, const Waves& waves, std::uint64_t number) {
  thread_local WaveCopies last;
  if (last.number == number && last.context == call.context() && last.generation == call.generation() &&
      last.scale == waves.scale && last.angles == waves.float32_angles) {
    return last;
  }
  last = {};
  std::vector<Frequency> frequencies;
  std::vector<std::uint8_t> axes;
  std::vector<std::uint32_t> columns;
  for (const Wave& wave : waves.waves) {
    frequencies.push_back(wave.frequency);
    axes.push_back(wave.axis);
  }
  for (const WaveColumn& column : waves.columns) {
    columns.push_back(static_cast<std::uint32_t>(column.wave) << 2 | (column.quarter & 3u));
  }
  last.waves = call.waves(frequencies, axes, waves.float32_angles, waves.scale);
  last.columns = call.numbers(std::span<const std::uint32_t>(columns));
  last.pairs = pairs_of(waves);
  const std::uint32_t apart = (last.pairs.quarters[1] - last.pairs.quarters[0]) & 3;
  if (last.pairs.found && apart % 2 == 1 && last.waves.axes == nullptr && waves.float32_angles.factors.empty()) {
    std::vector<StepParams> steps;
    for (const Frequency& frequency : frequencies) {
      const auto step = numerics::sine_cosine(numerics::reduce({frequency, 1}));
      // If the second column is the first one's derivative, or minus it.
      steps.push_back({step.cosine, apart == 1 ? step.sine : -step.sine});
    }
    last.steps = call.numbers(std::span<const StepParams>(steps));
  }
  last.number = number;
  last.count = waves.waves.size();
  last.angles = waves.float32_angles;
  last.scale = waves.scale;
  last.context = call.context();
  last.generation = call.generation();
  return last;
}

/// The fast table of float32 rows, if it applies.
bool write_table_rows(Call& call, const AddJob& job, const AddParams& p, const WaveCopies& copies) {
  constexpr std::int64_t kRows = 8;
  if (job.x != nullptr || job.out.type != DataType::kF32 || job.positions.has_ids()) return false;
  if (copies.steps == nullptr || job.out.lead_shape.rank > 1 || !(std::fabs(copies.scale) <= 1)) return false;
  if (!has_whole_vectors(p.out, DataType::kF32)) return false;
  const ColumnPairs& pairs = copies.pairs;
  const auto count = static_cast<std::int64_t>(copies.count);
  constexpr std::int64_t own = 2;  // waves per thread
  if (count % own != 0) return false;
  const std::int64_t across = (count / own + 255) / 256, tiles = (job.out.sequence + kRows - 1) / kRows;
  const std::int64_t blocks = across * tiles * job.out.batch;
  if (blocks > 0x7FFFFFFF) return false;
  const TableRowsParams rows{static_cast<float*>(p.out.data),
                             job.out.lead_shape.rank == 1 ? job.out.lead_strides[0] : 0,
                             job.out.token_stride,
                             job.out.sequence,
                             job.positions.first,
                             p.waves,
                             count,
                             {pairs.quarters[0], pairs.quarters[1]},
                             copies.steps,
                             divisor_of(across),
                             divisor_of(tiles),
                             call.fault()};
  static KernelSlot slots[2];
  launch(pairs.halves ? "table_rows_halves" : "table_rows_interleaved", slots[pairs.halves ? 1 : 0], {blocks, 256, 0},
         call.stream(), rows);
  return true;
}

/// The fast addition of whole vectors, if it applies.
bool add_vectors(const Call& call, const AddJob& job, const ColumnPairs& pairs, AddParams& p) {
  const DataType type = job.out.type;
  if (job.x == nullptr || type == DataType::kF64 || p.source == kFromLines) return false;
  if (!has_whole_vectors(p.out, type) || !has_whole_vectors(p.x, type)) return false;
  if (job.out.sequence > 0x7FFFFFFF) return false;
  const bool reads = p.source == kFromRows;
  if (reads) {
    const auto table = static_cast<DataType>(p.rows.type);
    if (table == DataType::kF64 || p.rows.column_stride != 1 || !is_aligned(p.rows.data) ||
        !is_whole(p.rows.row_stride, table)) {
      return false;
    }
  }
  p.together = static_cast<std::int32_t>(job.positions.batch_stride == 0 ? kMostRows : 1);
  const std::int64_t vectors = job.out.width * size_of(type) / 16, threads = reads ? 256 : 64;
  const std::int64_t across = (vectors + threads - 1) / threads;
  const std::int64_t groups = (job.out.batch + p.together - 1) / p.together;
  const std::int64_t blocks = across * job.out.sequence * groups;
  if (blocks > 0x7FFFFFFF) return false;
  p.across = divisor_of(across), p.by_sequence = divisor_of(job.out.sequence);
  const bool side_by_side = pairs.found && !pairs.halves && p.waves.axes == nullptr && p.waves.factors == nullptr;
  p.quarters[0] = pairs.quarters[0], p.quarters[1] = pairs.quarters[1];
  static KernelSlot slots[4][3];
  const std::size_t source = reads ? 1 : side_by_side ? 0 : 2;
  constexpr std::string_view kNames[4][3] = {
      {"add_vectors_f32_pairs", "add_vectors_f32_rows", "add_vectors_f32_waves"},
      {},
      {"add_vectors_f16_pairs", "add_vectors_f16_rows", "add_vectors_f16_waves"},
      {"add_vectors_bf16_pairs", "add_vectors_bf16_rows", "add_vectors_bf16_waves"}};
  const auto number = static_cast<std::size_t>(type);
  launch(kNames[number][source], slots[number][source], {blocks, static_cast<unsigned>(threads), 0}, call.stream(),
         p);
  return true;
}

}  // namespace

Outcome add(const AddJob& job) {
  Call call(job.site);
  AddParams p{};
  ColumnPairs pairs;
  p.out = call.tokens(job.out);
  if (job.x != nullptr) p.x = call.tokens(*job.x);
  p.positions = call.positions(job.positions);
  p.fault = call.fault();
  if (const auto* waves = std::get_if<Waves>(&job.form->source)) {
    p.source = kFromWaves;
    const WaveCopies& copies = copies_of(call, *waves, job.waves_number);
    p.waves = copies.waves;
    p.columns = copies.columns;
    pairs = copies.pairs;
    if (write_table_rows(call, job, p, copies)) return call.finish();
  } else if (const auto* rows = std::get_if<Rows>(&job.form->source)) {
    p.source = kFromRows;
    p.rows = call.table(rows->table);
    p.offset = rows->offset;
  } else {
    const auto& lines = std::get<Lines>(job.form->source);
    p.source = kFromLines;
    p.start = call.numbers(std::span<const double>(lines.start));
    p.step = call.numbers(std::span<const double>(lines.step));
  }
  if (!add_vectors(call, job, pairs, p)) {
    launch("add_any", spread(job.out.batch * job.out.sequence * job.out.width), call.stream(), p);
  }
  return call.finish();
}

void add_backward(const AddBackwardJob& job) {
  Call call(job.site);
  AddBackwardParams p{};
  p.table = call.tokens(job.table);
  p.gradient = call.tokens(job.gradient);
  p.positions = call.positions(job.positions);
  p.offset = job.offset;
  p.fault = call.fault();
  constexpr std::int64_t kThreads = 128;
  launch("add_backward", {job.table.sequence * ((job.table.width + kThreads - 1) / kThreads), kThreads, 0},
         call.stream(), p);
  call.finish();
}

}  // namespace posenc::kernels::cuda
