#include "diagnosis/parts.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "posenc/half.h"

namespace posenc::diagnosis {
namespace {

// "heads 3 and 7"
std::string named_ones(std::string_view one, const std::vector<std::int64_t>& list) {
  return fmt::format("{}{} {}", one, list.size() == 1 ? "" : "s", ranges_text(list));
}

std::vector<std::int64_t> numbers_of(const std::vector<bool>& flags) {
  std::vector<std::int64_t> list;
  for (std::size_t i = 0; i < flags.size(); ++i) {
    if (flags[i]) list.push_back(static_cast<std::int64_t>(i));
  }
  return list;
}

}  // namespace

std::string ranges_text(const std::vector<std::int64_t>& sorted) {
  std::vector<std::string> ranges;
  for (std::size_t i = 0; i < sorted.size();) {
    std::size_t end = i + 1;
    while (end < sorted.size() && sorted[end] == sorted[end - 1] + 1) ++end;
    if (end - i > 2) {
      ranges.push_back(fmt::format("{} to {}", sorted[i], sorted[end - 1]));
    } else {
      for (std::size_t k = i; k < end; ++k) ranges.push_back(fmt::format("{}", sorted[k]));
    }
    i = end;
  }
  if (ranges.size() < 2) return ranges.empty() ? "" : ranges.front();
  const std::string last = ranges.back();
  ranges.pop_back();
  return fmt::format("{} and {}", fmt::join(ranges, ", "), last);
}

HeadParts head_parts(const std::vector<bool>& misses, const Extents& shape) {
  HeadParts parts;
  if (shape.rank < 3) return parts;
  const std::int64_t heads = shape.back(2), size = shape.back(0) * shape.back(1);
  const std::int64_t outers = std::ssize(misses) / size;
  std::vector<bool> by_head(heads), by_sequence(outers / heads);
  for (std::size_t i = 0; i < misses.size(); ++i) {
    if (!misses[i]) continue;
    const std::int64_t outer = static_cast<std::int64_t>(i) / size;
    by_head[outer % heads] = true;
    by_sequence[outer / heads] = true;
  }
  const bool is_by_head = std::count(by_head.begin(), by_head.end(), false) > 0;
  const std::vector<bool>& flags = is_by_head ? by_head : by_sequence;
  const auto rest = std::count(flags.begin(), flags.end(), false);
  if (rest == 0) return parts;
  parts.heads = numbers_of(flags);
  for (std::int64_t outer = 0; outer < outers; ++outer) {
    const std::int64_t which = is_by_head ? outer % heads : outer / heads;
    if (flags[which]) parts.outers.push_back(outer);
  }
  parts.name = named_ones(is_by_head ? "head" : "sequence", parts.heads);
  parts.text = fmt::format("{} {}, the other {} {}", parts.name, parts.heads.size() == 1 ? "differs" : "differ",
                           rest == 1 ? "one" : std::to_string(rest), rest == 1 ? "agrees" : "agree");
  return parts;
}

TokenParts token_parts(const std::vector<bool>& misses, const Extents& shape) {
  TokenParts parts;
  const std::int64_t features = shape.back(0), tokens = shape.back(1);
  std::vector<bool> flags(tokens);
  for (std::size_t i = 0; i < misses.size(); ++i) {
    if (misses[i]) flags[static_cast<std::int64_t>(i) / features % tokens] = true;
  }
  std::vector<bool> agreeing = flags;
  agreeing.flip();
  if (std::count(agreeing.begin(), agreeing.end(), true) == 0) return parts;
  parts.tokens = numbers_of(flags);
  parts.name = named_ones("token", parts.tokens);
  const std::vector<std::int64_t> others = numbers_of(agreeing);
  parts.text = fmt::format("{} {}, {} {}", parts.name, parts.tokens.size() == 1 ? "differs" : "differ",
                           ranges_text(others), others.size() == 1 ? "agrees" : "agree");
  return parts;
}

TypedCopy::TypedCopy(const std::vector<double>& values, const Extents& shape, DataType type)
    : bytes_(values.size() * static_cast<std::size_t>(size_of(type))), shape_(shape), type_(type) {
  const auto fill = [&](const auto& convert) {
    std::size_t at = 0;
    for (const double value : values) {
      const auto narrow = convert(value);
      std::memcpy(&bytes_[at], &narrow, sizeof(narrow));
      at += sizeof(narrow);
    }
  };
  if (type == DataType::kF64) fill([](double value) { return value; });
  if (type == DataType::kF32) fill([](double value) { return static_cast<float>(value); });
  if (type == DataType::kF16) fill([](double value) { return to_half(value); });
  if (type == DataType::kBF16) fill([](double value) { return to_bfloat16(value); });
}

ConstTensorView TypedCopy::view() const { return {bytes_.data(), type_, shape_}; }

}  // namespace posenc::diagnosis
