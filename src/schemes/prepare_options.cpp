#include "posenc/prepare_options.h"

namespace posenc {

Extents shape_of(const TrainedTable& table, std::int64_t any) {
  Extents shape;
  for (const TrainedTable::Axis& axis : table.axes) shape.push_back(axis.extent == kAnyExtent ? any : axis.extent);
  return shape;
}

bool has_vectors(const TrainedTable& table) {
  for (const TrainedTable::Axis& axis : table.axes) {
    if (axis.extent == kAnyExtent) return true;
  }
  return false;
}

std::vector<std::int64_t> grid_of(std::int64_t rows, std::int64_t columns) { return {rows, columns}; }

std::vector<double> list_of(double number) { return {number}; }

}  // namespace posenc
