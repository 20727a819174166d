#include "figures/position_vectors.h"

#include <fmt/format.h>

#include <algorithm>

#include "figures/position_table.h"
#include "posenc/apply.h"
#include "posenc/error.h"
#include "posenc/function_ref.h"
#include "posenc/half.h"
#include "posenc/random.h"

namespace posenc::figures {
namespace {

// Calls `make` on an array of ones of type T and widens the result to double, which is exact.
template <class T> void make_as(std::vector<double>& values, T one, FunctionRef<void(T*)> make) {
  std::vector<T> typed(values.size(), one);
  make(typed.data());
  std::transform(typed.begin(), typed.end(), values.begin(), [](T value) { return to_double(value); });
}

// Computes the vectors in the requested type, widened to double.
void fill_rows(Vectors& vectors, const Request& request, const Positions& positions, const Form& form) {
  const auto make = [&](auto* data) {
    const auto count = static_cast<std::int64_t>(vectors.values.size()) / vectors.width;
    const TensorView rows = view(data, {count, vectors.width});
    if (const auto* const addition = std::get_if<Addition>(&form)) {
      tabulate(rows, positions, *addition);
    } else {
      rotate(rows, positions, std::get<Rotation>(form));
    }
  };
  switch (request.type) {
    case DataType::kF64:
      return make_as<double>(vectors.values, 1.0, make);
    case DataType::kF32:
      return make_as<float>(vectors.values, 1.0F, make);
    case DataType::kF16:
      return make_as<Half>(vectors.values, to_half(1.0), make);
    case DataType::kBF16:
      return make_as<BFloat16>(vectors.values, to_bfloat16(1.0), make);
    default:
      raise("figures: vectors are rounded to f64, f32, f16 or bf16");
  }
}

// Random numbers in place of a trained table, from a fixed seed.
std::vector<double> random_table(const TrainedTable& table) {
  Random random(1);
  std::vector<double> numbers(count_of(shape_of(table)));
  for (double& number : numbers) number = random.uniform();
  return numbers;
}

}  // namespace

double dot(const double* one, const double* other, std::int64_t width) {
  double sum = 0;
  for (std::int64_t i = 0; i < width; ++i) sum += one[i] * other[i];
  return sum;
}

Vectors vectors_of(const PlottedScheme& scheme, const Request& request, const Range& range,
                   const std::vector<std::int64_t>& ids) {
  const std::string_view name = name_of(scheme.scheme);
  if (is_bias(scheme.scheme)) raise(fmt::format("{} has no position vectors", name));
  Vectors vectors;
  PlottedScheme whole = scheme;
  std::vector<double> table;
  if (const auto* const learned = std::get_if<Learned>(&scheme.scheme);
      learned != nullptr && scheme.weights.data == nullptr) {
    const TrainedTable shape = learned->trained_table();
    if (count_of(shape_of(shape)) > kMostCells) raise("learned: rows · width is too large for this figure");
    table = random_table(shape);
    whole.weights = view(static_cast<const double*>(table.data()), shape_of(shape));
    vectors.is_random = true;
  }
  Form form = form_of(whole, request, range.to);
  const std::int64_t rows = ids.empty() ? range.count() : std::ssize(ids);
  const auto make_room = [&](std::int64_t width) {
    vectors.width = width;
    if (rows > kMostCells / width) {
      raise(fmt::format("{}: {} positions of {} numbers are too many for this figure", name, rows, width));
    }
    vectors.values.assign(rows * width, 1.0);
  };
  if (position_axes_of(form) != 1) {
    raise(fmt::format("{}: positions have several axes, and figures have one", name));
  }
  if (const auto* const addition = std::get_if<Addition>(&form)) {
    make_room(addition->width);
  } else if (auto* const rotation = std::get_if<Rotation>(&form)) {
    if (has_growth(*rotation)) raise("rope: with xpos, lengths change with position; this figure shows none");
    *rotation = head_of(*rotation, 0);
    rotation->first_dim = 0;  // features that are not rotated are left out
    make_room(2 * pairs_of(*rotation));
  } else {
    raise(fmt::format("{} has no position vectors", name));
  }
  fill_rows(vectors, request, ids.empty() ? Positions{.first = range.from} : Positions{.ids = ids}, form);
  return vectors;
}

std::string random_note(const Vectors& vectors) {
  return vectors.is_random ? " The table has random numbers instead of trained ones." : "";
}

}  // namespace posenc::figures
