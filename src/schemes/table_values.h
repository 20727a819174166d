#pragma once

#include <string_view>
#include <vector>

#include "posenc/tensor.h"

namespace posenc::schemes {

/// The elements of the caller's table in double, for any strides: for schemes that compute their form from it.
/// Throws: Error for a table on a GPU and for integers.
std::vector<double> table_values(std::string_view scheme, const ConstTensorView& table);

}  // namespace posenc::schemes
