#include "terms/counted_gates/counted_gates.h"

#include <fmt/format.h>

#include "forms/checks.h"
#include "posenc/error.h"

namespace posenc::terms {

void Term<CountedGates>::check(std::string_view verb, const CountedGates& source, std::int64_t heads) {
  check_tensor(verb, "the form's table", source.table, 2, 3, "2 or 3 axes, heads, rows and features");
  if (source.table.data == nullptr || source.table.shape.back(1) < 1) {
    raise(fmt::format("{}: the form's table has no rows", verb));
  }
  if (source.table.shape.rank == 3) check_heads(verb, heads, source.table.shape[0]);
}

Cost Term<CountedGates>::cost(const CountedGates& source, const CostSizes& sizes) {
  constexpr std::int64_t kOperationsPerKey = 6;  // a gate, a running sum, three for the value between two, the score
  const std::int64_t rows = source.table.shape.back(1);
  return {.operations = 2 * sizes.features * rows + kOperationsPerKey * sizes.keys, .numbers = sizes.features * rows};
}

}  // namespace posenc::terms
