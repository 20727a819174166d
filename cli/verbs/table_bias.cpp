#include "cli/verbs/table_bias.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "cli/arrays/array_name.h"
#include "cli/arrays/elements.h"
#include "cli/arrays/elision.h"
#include "cli/arrays/numbers.h"
#include "cli/system/failure.h"
#include "cli/system/signals.h"
#include "cli/system/terminal.h"
#include "posenc/apply.h"

namespace posenc::cli {
namespace {

struct Range {
  std::int64_t least, most;
};
Range range_of(const PositionList& list) {
  if (list.ids.empty()) return {list.first, list.first + (list.count - 1) * list.step};
  const auto [least, most] = std::minmax_element(list.ids.begin(), list.ids.end());
  return {*least, *most};
}

class BlockMaker {
 public:
  explicit BlockMaker(const BiasTableJob& job) : job_(job), keys_(slice(job.keys, 0, job.keys.count, key_ids_)) {}

  std::vector<std::byte> make(const Bias& head, std::int64_t first, std::int64_t queries) const {
    std::vector<std::byte> bytes(queries * job_.keys.count * size_of(job_.type));
    std::vector<std::int64_t> scratch;
    bias({bytes.data(), job_.type, {1, queries, job_.keys.count}}, slice(job_.queries, first, queries, scratch),
         keys_, head);
    return bytes;
  }

 private:
  const BiasTableJob& job_;
  std::vector<std::int64_t> key_ids_;
  Positions keys_;
};

// "8", or "0 1" if a position has several coordinates.
std::string label_without_commas(const PositionList& positions, std::int64_t index) {
  std::string label = position_label(positions, index);
  std::replace(label.begin(), label.end(), ',', ' ');
  return label;
}

struct Look {
  int digits, columns;
  bool colour;
};

// One head: queries in rows, keys in columns.
std::string head_text(const BiasTableJob& job, const BlockMaker& maker, std::int64_t head, const Look& look) {
  const Bias one = head_of(job.form, head);
  const Shown rows = shown_rows(job.queries.count);
  std::vector<std::string> labels;
  std::vector<std::vector<std::string>> cells;
  int cell_columns = widest({position_label(job.keys, 0), position_label(job.keys, job.keys.count - 1)}, 0);
  for (const std::int64_t row : rows.indices()) {
    stop_if_signalled();
    labels.push_back(position_label(job.queries, row));
    const std::vector<std::byte> bytes = maker.make(one, row, 1);
    std::vector<std::string> texts;
    for (std::int64_t key = 0; key < job.keys.count; ++key) {
      if (key >= kWidestScreen && key < job.keys.count - kWidestScreen) continue;
      texts.push_back(rounded(element_at(bytes.data(), job.type, key), look.digits));
    }
    cell_columns = widest(texts, cell_columns);
    cells.push_back(std::move(texts));
  }
  const int label_columns = widest(labels, columns_of("query"));
  const int room = std::min(look.columns, kWidestScreen) - label_columns;
  const Shown shown = shown_columns(job.keys.count, room, cell_columns + kColumnGap);

  std::vector<std::string> numbers;
  for (const std::int64_t key : shown.indices()) numbers.push_back(position_label(job.keys, key));
  std::string text = dim(line_of("query", label_columns, numbers, cell_columns, shown), look.colour) + "\n";
  for (std::size_t i = 0; i < cells.size(); ++i) {
    if (!rows.is_whole() && static_cast<std::int64_t>(i) == rows.head) text += line_left_out(label_columns) + "\n";
    text += line_of(labels[i], label_columns, ends_of(cells[i], shown), cell_columns, shown) + "\n";
  }
  return text;
}

}  // namespace

void refuse_vectors(const Scheme& scheme) {
  if (!has_vectors(trained_table_of(scheme))) return;
  refuse(fmt::format("{} has no table: its vectors multiply q and k inside attention", name_of(scheme)));
}

std::int64_t length_of(const BiasTableJob& job) {
  const Range queries = range_of(job.queries), keys = range_of(job.keys);
  if (length_need_of(job.scheme) == LengthNeed::kPositions) return std::max(queries.most, keys.most) + 1;
  return std::max(keys.most - queries.least, queries.most - keys.least) + 1;
}

Extents shape_of(const BiasTableJob& job) { return {job.form.heads, job.queries.count, job.keys.count}; }

void check_bias_job(const BiasTableJob& job, TableFormat format, std::int64_t limit) {
  const int axes = position_axes_of(job.form);
  if (axes != job.queries.axes || axes != job.keys.axes) {
    const std::string way = axes > 1 ? fmt::format("--grid with {0} numbers, or @ids.npy of shape [{0}, n]", axes)
                                     : std::string("a list or a range");
    refuse(fmt::format("{}: needs positions with {} axes, got {} ({})", name_of(job.scheme), axes,
                       axes != job.queries.axes ? job.queries.axes : job.keys.axes, way));
  }
  const double bytes = table_bytes(static_cast<double>(job.form.heads) * static_cast<double>(job.queries.count),
                                   static_cast<double>(job.keys.count), job.type, format);
  if (bytes <= static_cast<double>(limit)) return;
  refuse(fmt::format("table of {} x {} x {} {} needs {}; limit is {} (--max-bytes)", job.form.heads,
                     job.queries.count, job.keys.count, spoken_name(job.type), in_bytes(bytes),
                     in_bytes(static_cast<double>(limit))));
}

TableSource source_of(const BiasTableJob& job) {
  TableSource table;
  table.type = job.type;
  table.planes = job.form.heads;
  table.rows = job.queries.count;
  table.columns = job.keys.count;
  struct Head {
    std::int64_t index = -1;
    Bias form = {};
    std::vector<std::byte> bytes = {};
  };
  table.make = [&job, maker = std::make_shared<BlockMaker>(job), kept = std::make_shared<Head>()](
                   std::int64_t head, std::int64_t first, std::int64_t queries) {
    if (head != kept->index) *kept = {head, head_of(job.form, head), {}};
    kept->bytes = maker->make(kept->form, first, queries);
    return static_cast<const std::byte*>(kept->bytes.data());
  };
  table.head = [&job](TableFormat format) {
    const ArrayFormat array = format == TableFormat::kNpy ? ArrayFormat::kNpy : ArrayFormat::kSafetensors;
    return array_head(array, "table", job.type, shape_of(job));
  };
  table.csv_head = "head,query";
  for (std::int64_t key = 0; key < job.keys.count; ++key) table.csv_head += "," + label_without_commas(job.keys, key);
  table.csv_label = [&job](std::int64_t head, std::int64_t query) {
    return fmt::format("{},{},", head, label_without_commas(job.queries, query));
  };
  table.json_head = [&job](const ByteSink& sink) {
    sink(fmt::format("{{\"scheme\":{},\"queries\":", to_json(job.scheme)));
    write_positions(job.queries, sink);
    sink(",\"keys\":");
    write_positions(job.keys, sink);
    sink(fmt::format(",\"shape\":[{},{},{}],\"dtype\":\"{}\"", job.form.heads, job.queries.count, job.keys.count,
                     name_of(job.type)));
  };
  table.json_lists = {"values"};
  table.is_nested_in_json = true;
  return table;
}

std::string bias_table_text(const BiasTableJob& job, int digits, int columns, bool colour) {
  constexpr std::int64_t kMostHeads = 12, kHead = 4, kTail = 2;
  const BlockMaker maker(job);
  std::string text;
  for (std::int64_t head = 0; head < job.form.heads; ++head) {
    if (job.form.heads > kMostHeads && head == kHead) {
      text += "\n…\n";
      head = job.form.heads - kTail;
    }
    text += fmt::format("{}{}\n", head > 0 ? "\n" : "", bold(fmt::format("head {}", head), colour));
    text += head_text(job, maker, head, {digits, columns, colour});
  }
  return text;
}

}  // namespace posenc::cli
