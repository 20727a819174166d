#pragma once

#include <string_view>
#include <vector>

#include "posenc/tensor.h"

namespace posenc::schemes {

/// The elements of the caller's table, in double, whatever its strides: for schemes whose form is computed from it.
/// Throws: Error for a table on a GPU and for one of integers.
std::vector<double> table_values(std::string_view scheme, const ConstTensorView& table);

}  // namespace posenc::schemes
