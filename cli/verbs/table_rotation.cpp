#include "cli/verbs/table_rotation.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <memory>
#include <span>

#include "posenc/apply.h"
#include "posenc/json.h"
#include "posenc/npy.h"
#include "posenc/safetensors.h"

namespace posenc::cli {
namespace {

// Some rows of both halves. They are computed together, so that a table of one block is computed once.
class RotationRows {
 public:
  explicit RotationRows(const RotationTableJob& job) : job_(job) {}

  const std::byte* make(std::int64_t half, std::int64_t first, std::int64_t rows) {
    if (first != first_ || rows != rows_) {
      first_ = first;
      rows_ = rows;
      for (auto& bytes : bytes_) bytes.resize(rows * job_.pairs() * size_of(job_.type));
      const Extents shape = {rows, job_.pairs()};
      tabulate({bytes_[0].data(), job_.type, shape}, {bytes_[1].data(), job_.type, shape},
               slice(job_.positions, first, rows, scratch_), job_.form);
    }
    return bytes_[half].data();
  }

 private:
  const RotationTableJob& job_;
  std::int64_t first_ = -1, rows_ = 0;
  std::array<std::vector<std::byte>, 2> bytes_;  // cosines, sines
  std::vector<std::int64_t> scratch_;
};

std::string rotation_table_head(const RotationTableJob& job, TableFormat format) {
  if (format == TableFormat::kNpy) return npy_head(job.type, job.shape());
  const Extents half = {job.positions.count, job.pairs()};
  SafetensorsHead head;
  head.tensors = {{.name = "cos", .type = job.type, .shape = half},
                  {.name = "frequencies", .type = DataType::kF64, .shape = {std::ssize(job.form.frequencies)}},
                  {.name = "sin", .type = job.type, .shape = half}};
  return lay_out_safetensors(head);
}

void write_rotation_json_head(const RotationTableJob& job, const ByteSink& sink) {
  sink(fmt::format("{{\"scheme\":{},\"positions\":", to_json(job.scheme)));
  write_positions(job.positions, sink);
  Json::Array frequencies;
  for (const double frequency : frequencies_of(job.form)) frequencies.emplace_back(frequency);
  sink(fmt::format(",\"frequencies\":{},\"magnitude\":{},\"softmax_factor\":{}", dump_json(std::move(frequencies)),
                   dump_json(job.form.magnitude), dump_json(job.form.softmax_factor)));
}

}  // namespace

TableSource source_of(const RotationTableJob& job) {
  TableSource table;
  table.type = job.type;
  table.planes = table.planes_at_once = 2;
  table.rows = job.positions.count;
  table.columns = job.pairs();
  table.make = [kept = std::make_shared<RotationRows>(job)](std::int64_t half, std::int64_t first,
                                                            std::int64_t rows) {
    return kept->make(half, first, rows);
  };
  table.head = [&job](TableFormat format) { return rotation_table_head(job, format); };
  // .safetensors puts the widest elements first, then sorts by name: frequencies are f64
  table.between = [&job](std::int64_t half) -> std::string {
    if (half != (job.type == DataType::kF64 ? 1 : 0)) return {};
    const std::vector<double> frequencies = frequencies_of(job.form);
    const auto bytes = std::as_bytes(std::span(frequencies));
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  };
  table.is_side_by_side = true;
  table.csv_head = csv_positions_head(job.positions);
  for (const char letter : {'c', 's'}) {
    for (std::int64_t pair = 0; pair < job.pairs(); ++pair) table.csv_head += fmt::format(",{}{}", letter, pair);
  }
  table.csv_label = [&job](std::int64_t, std::int64_t row) { return csv_position(job.positions, row); };
  table.json_head = [&job](const ByteSink& sink) { write_rotation_json_head(job, sink); };
  table.json_lists = {"cosines", "sines"};
  return table;
}

void try_ends(const Rotation& form, const PositionList& list) {
  if (list.count == 0) return;
  std::int64_t smallest = 0, largest = list.count - 1;
  if (!list.ids.empty()) {
    // of the first axis, because growth has only one
    const auto [low, high] = std::minmax_element(list.ids.begin(), list.ids.begin() + list.count);
    smallest = low - list.ids.begin();
    largest = high - list.ids.begin();
  }
  const Rotation one = head_of(form, 0);
  std::vector<float> row(2 * pairs_of(one));
  std::vector<std::int64_t> scratch;
  for (const std::int64_t index : {smallest, largest}) {
    tabulate(view(row.data(), {1, pairs_of(one)}), view(row.data() + pairs_of(one), {1, pairs_of(one)}),
             slice(list, index, 1, scratch), one);
  }
}

}  // namespace posenc::cli
