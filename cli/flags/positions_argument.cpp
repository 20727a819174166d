#include "cli/flags/positions_argument.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <span>

#include "cli/arrays/input_array.h"
#include "cli/arrays/numbers.h"
#include "cli/system/failure.h"
#include "posenc/apply.h"

namespace posenc::cli {
namespace {

constexpr std::int64_t kMostGridPoints = std::int64_t{1} << 22;  // they are kept in memory

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  while (true) {
    const std::size_t end = text.find(separator);
    parts.push_back(text.substr(0, end));
    if (end == std::string_view::npos) return parts;
    text.remove_prefix(end + 1);
  }
}

[[noreturn]] void refuse_position(std::string_view where, std::string_view text) {
  refuse(fmt::format("{}: {} is not a position; positions are 0 to {}", where, text, kPositionLimit - 1));
}

bool is_whole_number(std::string_view text) {
  if (text.starts_with('-')) text.remove_prefix(1);
  return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
}

// `limit` is one more than the largest value allowed.
std::int64_t position_below(std::string_view text, std::int64_t limit, std::string_view flag) {
  if (!is_whole_number(text)) integer_from(text, flag);
  // longer than any position, and possibly than 64 bits
  if (text.size() > 18) refuse_position(flag, text);
  const std::int64_t position = integer_from(text, flag);
  if (position < 0 || position >= limit) refuse_position(flag, text);
  return position;
}

// A number as written: -3, 5/8, 0.25.
struct Fraction {
  std::int64_t numerator = 0, denominator = 1;
};

Fraction fraction_from(std::string_view text, std::string_view flag) {
  const auto refuse_fraction = [&] {
    refuse(fmt::format("{}: '{}' is not a position; write e.g. -3, 5/8 or 0.25", flag, text));
  };
  const std::size_t mark = text.find_first_of("/.");
  const std::string_view whole = text.substr(0, mark);
  if (!is_whole_number(whole) || whole.size() > 17) refuse_fraction();
  Fraction made{integer_from(whole, flag), 1};
  if (mark != std::string_view::npos) {
    const std::string_view rest = text.substr(mark + 1);
    if (!is_whole_number(rest) || rest.starts_with('-') || rest.size() > 15) refuse_fraction();
    const std::int64_t digits = integer_from(rest, flag);
    if (text[mark] == '/') {
      made.denominator = digits;
    } else {
      for (std::size_t i = 0; i < rest.size(); ++i) made.denominator *= 10;
      std::int64_t scaled = 0;
      if (__builtin_mul_overflow(made.numerator, made.denominator, &scaled)) refuse_fraction();
      made.numerator = scaled + (whole.starts_with('-') ? -digits : digits);
    }
  }
  if (made.denominator < 1) refuse(fmt::format("{}: {} has a denominator of 0", flag, text));
  const std::int64_t shared = std::gcd(made.numerator, made.denominator);
  return {made.numerator / shared, made.denominator / shared};
}

// Numerators over one denominator.
std::int64_t one_denominator(std::vector<Fraction>& fractions, std::string_view flag) {
  std::int64_t common = 1;
  for (const Fraction& one : fractions) {
    if (__builtin_mul_overflow(common, one.denominator / std::gcd(common, one.denominator), &common) ||
        common >= std::int64_t{1} << 62) {
      refuse(fmt::format("{}: the common denominator of the positions is too large", flag));
    }
  }
  for (Fraction& one : fractions) {
    std::int64_t numerator = 0;
    if (__builtin_mul_overflow(one.numerator, common / one.denominator, &numerator) || numerator <= -kPositionLimit ||
        numerator > kPositionLimit) {
      refuse(fmt::format("{}: {}/{} has more than 53 bits over the common denominator {}", flag, one.numerator,
                         one.denominator, common));
    }
    one = {numerator, common};
  }
  return common;
}

PositionList range_from(std::string_view text, std::string_view flag, bool is_signed) {
  const std::vector<std::string_view> parts = split(text, ':');
  const bool is_complete = std::none_of(parts.begin(), parts.end(), [](auto part) { return part.empty(); });
  if (parts.size() > 3 || !is_complete) {
    refuse(fmt::format("{}: '{}' is not a range; write from:to or from:to:step, e.g. 0:8", flag, text));
  }
  PositionList list;
  std::int64_t stop = 0;
  if (is_signed) {
    std::vector<Fraction> ends;
    for (const std::string_view part : parts) ends.push_back(fraction_from(part, flag));
    if (parts.size() == 2) ends.push_back({1, 1});
    list.denominator = one_denominator(ends, flag);
    list.first = ends[0].numerator;
    stop = ends[1].numerator;
    list.step = ends[2].numerator;
  } else {
    list.first = position_below(parts[0], kPositionLimit, flag);
    stop = position_below(parts[1], kPositionLimit + 1, flag);
    if (parts.size() == 3) list.step = integer_from(parts[2], flag);
  }
  if (list.step < 1)
    refuse(fmt::format("{}: {} has step {}; it must be {}", flag, text, parts[2],
                       is_signed ? "positive" : "at least 1"));
  if (stop < list.first) refuse(fmt::format("{}: {} ends before it starts", flag, text));
  if (stop == list.first) refuse(fmt::format("{}: {} is empty (ranges exclude the end)", flag, text));
  list.count = (stop - list.first - 1) / list.step + 1;
  return list;
}

PositionList file_from(const std::string& path, bool is_signed) {
  const InputArray input(path);
  const Extents& shape = input.shape();
  if (input.type() != DataType::kI64) {
    refuse(fmt::format("{} contains {}; positions must be int64", path, name_of(input.type())));
  }
  if (shape.rank != 1 && shape.rank != 2) {
    refuse(fmt::format("{} has shape {}; positions are [n] or [axes, n]", path, to_string(shape)));
  }
  PositionList list;
  list.count = shape.back(0);
  if (count_of(shape) == 0) refuse(fmt::format("{} contains no positions", path));
  // more axes than any scheme has; the scheme itself reports how many it needs
  if (shape.rank == 2) list.axes = static_cast<int>(std::min<std::int64_t>(shape[0], 1 << 20));
  list.ids.resize(count_of(shape));
  input.read(0, std::as_writable_bytes(std::span(list.ids)));
  for (const std::int64_t id : list.ids) {
    if (id < (is_signed ? 1 - kPositionLimit : 0) || id >= kPositionLimit) refuse_position(path, std::to_string(id));
  }
  return list;
}

}  // namespace

PositionList positions_from(std::string_view text, std::string_view flag) {
  if (text.starts_with('@')) return file_from(std::string(text.substr(1)), false);
  if (text.find(':') != std::string_view::npos) return range_from(text, flag, false);
  // 0-4 is not a range here: it could mean the positions 0 and -4, or end at 3 or at 4
  const std::size_t dash = text.find('-', 1);
  if (dash != std::string_view::npos && is_whole_number(text.substr(0, dash)) &&
      is_whole_number(text.substr(dash + 1))) {
    refuse(fmt::format("{}: a range is written {}:{} (the end does not count), not {}", flag, text.substr(0, dash),
                       text.substr(dash + 1), text));
  }
  PositionList list;
  for (const std::string_view part : split(text, ',')) list.ids.push_back(position_below(part, kPositionLimit, flag));
  list.count = static_cast<std::int64_t>(list.ids.size());
  return list;
}

PositionList signed_positions_from(std::string_view text, std::string_view flag) {
  const bool is_plain = text.find_first_of("/.") == std::string_view::npos && !text.starts_with('-') &&
                        text.find(",-") == std::string_view::npos;
  if (text.starts_with('@')) return file_from(std::string(text.substr(1)), true);
  if (is_plain) return positions_from(text, flag);
  if (text.find(':') != std::string_view::npos) return range_from(text, flag, true);
  std::vector<Fraction> fractions;
  for (const std::string_view part : split(text, ',')) fractions.push_back(fraction_from(part, flag));
  PositionList list;
  list.denominator = one_denominator(fractions, flag);
  for (const Fraction& one : fractions) list.ids.push_back(one.numerator);
  list.count = static_cast<std::int64_t>(list.ids.size());
  return list;
}

PositionList positions_of_grid(std::string_view text) {
  std::vector<std::int64_t> extents;
  std::int64_t points = 1;
  for (const std::string_view part : split(text, ',')) {
    const std::int64_t extent = integer_from(part, "--grid");
    if (extent < 1) refuse(fmt::format("--grid: {} must be at least 1", extent));
    if (extent > kMostGridPoints / points) {
      refuse(fmt::format("--grid: {} has more than {} points", text, kMostGridPoints));
    }
    points *= extent;
    extents.push_back(extent);
  }
  PositionList list;
  list.axes = static_cast<int>(extents.size());
  list.count = points;
  list.ids = grid_positions(extents);
  return list;
}

void check_axes(std::string_view scheme, int axes, const PositionList& list) {
  if (axes == list.axes) return;
  const std::string way = axes > 1 ? fmt::format("--grid with {0} numbers, or @ids.npy of shape [{0}, n]", axes)
                                   : std::string("a list or a range");
  refuse(fmt::format("{}: needs positions with {} axes, got {} ({})", scheme, axes, list.axes, way));
}

void try_largest(const Addition& form, const PositionList& list) {
  if (list.count == 0) return;
  std::int64_t index = list.count - 1;
  // of the first axis: forms with several axes have no last position except that of all axes
  if (!list.ids.empty()) index = std::max_element(list.ids.begin(), list.ids.begin() + list.count) - list.ids.begin();
  std::vector<float> row(form.width);
  std::vector<std::int64_t> scratch;
  tabulate(view(row.data(), {1, form.width}), slice(list, index, 1, scratch), form);
}

std::int64_t position_at(const PositionList& list, int axis, std::int64_t index) {
  if (list.ids.empty()) return list.first + index * list.step;
  return list.ids[axis * list.count + index];
}

std::string position_text(const PositionList& list, int axis, std::int64_t index) {
  const std::int64_t numerator = position_at(list, axis, index), shared = std::gcd(numerator, list.denominator);
  if (list.denominator == shared) return fmt::format("{}", numerator / shared);
  return fmt::format("{}/{}", numerator / shared, list.denominator / shared);
}

Positions slice(const PositionList& list, std::int64_t begin, std::int64_t count,
                std::vector<std::int64_t>& scratch) {
  if (list.ids.empty() && list.step == 1) return {.first = list.first + begin};
  if (!list.ids.empty() && list.axes == 1) {
    return {.ids = std::span(list.ids).subspan(begin, count)};
  }
  scratch.clear();
  for (int axis = 0; axis < list.axes; ++axis) {
    for (std::int64_t i = 0; i < count; ++i) scratch.push_back(position_at(list, axis, begin + i));
  }
  return {.ids = scratch, .axes = list.axes};
}

}  // namespace posenc::cli
