#include <fmt/format.h>

#include <cmath>
#include <cstring>

#include "explorer/wasm/package.h"
#include "posenc/error.h"
#include "posenc/frequency.h"

namespace posenc::page {
namespace {

[[noreturn]] void refuse(std::string_view verb, std::string_view name, std::string_view rule) {
  raise(fmt::format("{}: {} {}", verb, name, rule));
}

Extents shape_from(const Json& where, std::string_view verb, std::string_view name) {
  const Json* const found = where.find("shape");
  const auto* const list = found == nullptr ? nullptr : found->as<Json::Array>();
  if (list == nullptr) refuse(verb, name, "has no shape");
  if (list->size() > Extents::kMax) refuse(verb, name, fmt::format("has more than {} axes", Extents::kMax));
  Extents shape;
  for (const Json& one : *list) {
    const auto* const extent = one.as<std::int64_t>();
    if (extent == nullptr || *extent < 0) refuse(verb, name, "must have a shape of integers that are not negative");
    shape.push_back(*extent);
  }
  return shape;
}

}  // namespace

bool has_piece(const Question& question, std::string_view name) {
  const Json* const where = question.fields.find(name);
  return where != nullptr && where->as<Json::Object>() != nullptr;
}

std::span<const std::byte> piece(const Question& question, std::string_view name) {
  if (!has_piece(question, name)) raise(fmt::format("{} is missing", name));
  const Json& where = *question.fields.find(name);
  const std::int64_t at = integer(where, "at", -1), size = integer(where, "size", -1);
  const auto all = static_cast<std::int64_t>(question.bytes.size());
  if (at < 0 || size < 0 || at > all || size > all - at) raise(fmt::format("{} is outside the bytes", name));
  return question.bytes.subspan(static_cast<std::size_t>(at), static_cast<std::size_t>(size));
}

ConstTensorView tensor(const Question& question, std::string_view verb, std::string_view name, NpyArray& kept) {
  const std::span<const std::byte> bytes = piece(question, name);
  const Json& where = *question.fields.find(name);
  if (flag(where, "npy")) {
    kept = read_npy(bytes, {.void2_is_bf16 = true, .uint16_is_bf16 = true});
    if (kept.type == DataType::kI64) refuse(verb, name, "holds integers, not floating-point numbers");
    return kept.view();
  }
  const DataType type = data_type_from(text(where, "dtype", "f32"));
  if (type == DataType::kI64 || type == DataType::kBool) refuse(verb, name, "must hold floating-point numbers");
  const Extents shape = shape_from(where, verb, name);
  const std::int64_t count = count_of(shape), have = static_cast<std::int64_t>(bytes.size()) / size_of(type);
  if (count != have) {
    refuse(verb, name,
           fmt::format("has shape {}, which is {} elements, but its data has {}", to_string(shape),
                       count < 0 ? std::string("too many") : std::to_string(count), have));
  }
  return {bytes.data(), type, shape};
}

Ids ids(const Question& question, std::string_view verb, std::string_view name) {
  Ids made;
  if (!has_piece(question, name)) return made;
  const std::span<const std::byte> bytes = piece(question, name);
  const std::int64_t axes = integer(*question.fields.find(name), "axes", 1);
  const std::size_t count = bytes.size() / sizeof(double);
  if (axes < 1 || axes > Extents::kMax || count % static_cast<std::size_t>(axes) != 0) {
    refuse(verb, name, fmt::format("must have as many positions on each of its {} axes", axes));
  }
  made.axes = static_cast<int>(axes);
  made.values.reserve(count);
  for (std::size_t i = 0; i < count; ++i) {
    double value = 0;
    std::memcpy(&value, bytes.data() + i * sizeof value, sizeof value);
    if (!(std::fabs(value) < static_cast<double>(kPositionLimit)) || value != std::floor(value)) {
      refuse(verb, name, fmt::format("must be integers below 2^53 but number {} is {}", i, value));
    }
    made.values.push_back(static_cast<std::int64_t>(value));
  }
  return made;
}

}  // namespace posenc::page
