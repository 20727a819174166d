// Tables of a scheme, as the program computes them.

#include <cmath>
#include <limits>
#include <variant>

#include "explorer/wasm/call.h"
#include "posenc/apply.h"
#include "posenc/error.h"
#include "posenc/scheme.h"

namespace posenc::page {
namespace {

constexpr std::int64_t kMostNumbers = std::int64_t{1} << 24;

DataType asked_type(const Json& fields) {
  const std::string name = text(fields, "dtype", "f32");
  for (const DataType type : {DataType::kF32, DataType::kF64, DataType::kF16, DataType::kBF16}) {
    if (name_of(type) == name) return type;
  }
  raise("dtype must be f32, f64, f16 or bf16 but is " + name);
}

}  // namespace

Scheme asked_scheme(const Json& fields) {
  const Json* const found = fields.find("scheme");
  if (found == nullptr) raise("scheme is missing");
  return scheme_from(*found);
}

/// Rows of a table: of an addition its vectors, of a rotation the cosines, then the sines.
Answer table(const Question& question) {
  const Json& fields = question.fields;
  const std::int64_t first = integer(fields, "first", 0), count = integer(fields, "count", 16);
  const Form form = prepare(asked_scheme(fields), {.length = first + count});
  const DataType type = asked_type(fields);
  const auto size = static_cast<std::size_t>(size_of(type));
  Answer answer;
  const auto make_room = [&](std::int64_t columns) {
    if (count < 1 || columns < 1 || count > kMostNumbers / columns) raise("table: too many numbers for a page");
    answer.bytes.resize(static_cast<std::size_t>(count * columns) * size);
    answer.json = Json::Object{{"rows", count}, {"columns", columns}, {"dtype", name_of(type)}};
  };
  if (const auto* addition = std::get_if<Addition>(&form)) {
    make_room(addition->width);
    tabulate({answer.bytes.data(), type, {count, addition->width}}, {.first = first}, *addition);
  } else if (const auto* whole = std::get_if<Rotation>(&form)) {
    const Rotation rotation = head_of(*whole, 0);
    const std::int64_t pairs = pairs_of(rotation);
    make_room(2 * pairs);
    const Extents shape = {count, pairs}, steps = {2 * pairs, 1};
    tabulate({answer.bytes.data(), type, shape, steps},
             {answer.bytes.data() + static_cast<std::size_t>(pairs) * size, type, shape, steps}, {.first = first},
             rotation);
  } else {
    raise("table: a bias has no rows; use scores");
  }
  return answer;
}

/// Of the other positions below `length`, the one whose vector is closest to that of `at`.
Answer closest(const Question& question) {
  const Json& fields = question.fields;
  const std::int64_t at = integer(fields, "at", 0), count = integer(fields, "length", 128);
  if (count < 2 || count > 4096) raise("closest: length must be 2 to 4096");
  if (at < 0 || at >= count) raise("closest: at must be below length");
  const Form form = prepare(asked_scheme(fields), {.length = count});
  const Addition* vectors = std::get_if<Addition>(&form);
  Addition of_rotation;
  if (const auto* rotation = std::get_if<Rotation>(&form)) {
    if (!is_plain(*rotation)) raise("closest: works with rotations that are alike in all heads");
    of_rotation.width = 2 * pairs_of(*rotation);
    of_rotation.source = waves_of(*rotation);
    vectors = &of_rotation;
  }
  if (vectors == nullptr) raise("closest: a bias gives a position no vector");
  const std::int64_t width = vectors->width;
  if (width > kMostNumbers / count) raise("closest: too many numbers for a page");
  std::vector<double> rows(static_cast<std::size_t>(count * width));
  tabulate(view(rows.data(), {count, width}), {}, *vectors);
  const double* const mine = rows.data() + at * width;
  double least = std::numeric_limits<double>::infinity(), norm = 0;
  std::int64_t nearest = at;
  for (std::int64_t column = 0; column < width; ++column) norm += mine[column] * mine[column];
  for (std::int64_t row = 0; row < count; ++row) {
    double sum = 0;
    for (std::int64_t column = 0; column < width; ++column) {
      const double difference = rows[static_cast<std::size_t>(row * width + column)] - mine[column];
      sum += difference * difference;
    }
    if (row != at && sum < least) {
      least = sum;
      nearest = row;
    }
  }
  return {Json::Object{{"position", nearest}, {"distance", std::sqrt(least)}, {"norm", std::sqrt(norm)}}, {}};
}

}  // namespace posenc::page
