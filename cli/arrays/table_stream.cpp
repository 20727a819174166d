#include "cli/arrays/table_stream.h"

#include <fmt/format.h>

#include <memory>
#include <vector>

#include "cli/arrays/array_name.h"
#include "posenc/apply.h"

namespace posenc::cli {

TableSource source_of(const TableJob& job) {
  TableSource table;
  table.type = job.type;
  table.rows = job.positions.count;
  table.columns = job.form.width;

  struct Rows {
    std::vector<std::byte> bytes;
    std::vector<std::int64_t> scratch;
  };
  table.make = [&job, kept = std::make_shared<Rows>()](std::int64_t, std::int64_t first, std::int64_t rows) {
    kept->bytes.resize(rows * job.form.width * size_of(job.type));
    tabulate({kept->bytes.data(), job.type, {rows, job.form.width}}, slice(job.positions, first, rows, kept->scratch),
             job.form);
    return static_cast<const std::byte*>(kept->bytes.data());
  };

  table.head = [&job](TableFormat format) {
    return array_head(format == TableFormat::kNpy ? ArrayFormat::kNpy : ArrayFormat::kSafetensors, "table", job.type,
                      {job.positions.count, job.form.width});
  };
  table.csv_head = csv_positions_head(job.positions);
  for (std::int64_t column = 0; column < job.form.width; ++column) table.csv_head += fmt::format(",{}", column);
  table.csv_label = [&job](std::int64_t, std::int64_t row) { return csv_position(job.positions, row); };
  table.json_head = [&job](const ByteSink& sink) {
    sink(fmt::format("{{\"scheme\":{},\"positions\":", to_json(job.scheme)));
    write_positions(job.positions, sink);
    sink(fmt::format(",\"shape\":[{},{}],\"dtype\":\"{}\"", job.positions.count, job.form.width, name_of(job.type)));
  };
  table.json_lists = {"values"};
  return table;
}

}  // namespace posenc::cli
