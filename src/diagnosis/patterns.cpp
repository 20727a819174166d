// What positions that were found token by token have in common.

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>

#include "diagnosis/angles.h"
#include "diagnosis/parts.h"
#include "diagnosis/rotations.h"

namespace posenc::diagnosis {
namespace {

using Row = std::vector<std::int64_t>;

std::vector<Row> rows_of(const Samples& samples, const Convention& found) {
  std::vector<Row> rows;
  const std::ptrdiff_t tokens = samples.sequence;
  for (auto at = found.positions.begin(); at != found.positions.end(); at += tokens) {
    rows.emplace_back(at, at + tokens);
  }
  return rows;
}

// Whether one row is the other plus a constant: which.
std::optional<std::int64_t> shift_between(const Row& from, const Row& to) {
  for (std::size_t i = 0; i < from.size(); ++i) {
    if (to[i] - from[i] != to[0] - from[0]) return std::nullopt;
  }
  return to[0] - from[0];
}

bool is_all(const Row& row, std::int64_t value) {
  return std::all_of(row.begin(), row.end(), [&](std::int64_t one) { return one == value; });
}

// Some sequences, or heads, have other positions than most.
std::string odd_ones(const std::vector<Row>& rows) {
  std::map<Row, std::vector<std::int64_t>> alike;
  for (std::size_t i = 0; i < rows.size(); ++i) alike[rows[i]].push_back(static_cast<std::int64_t>(i));
  if (alike.size() != 2) return "";
  auto most = alike.begin(), fewest = std::next(most);
  // of two halves, the one that is rotated is right
  const bool is_tied = most->second.size() == fewest->second.size();
  if (most->second.size() < fewest->second.size() || (is_tied && is_all(most->first, 0))) std::swap(most, fewest);
  const std::optional<std::int64_t> shift = shift_between(most->first, fewest->first);
  const std::string what = is_all(fewest->first, 0) ? "not rotated"
                           : shift                  ? fmt::format("off by {}", *shift)
                                                    : "at other positions";
  const bool is_one = fewest->second.size() == 1;
  return fmt::format("{} {} (along the axis before the sequence) {} {}, unlike the other {}",
                     is_one ? "head" : "heads", ranges_text(fewest->second), is_one ? "is" : "are", what,
                     most->second.size());
}

// One row against the positions that were given, or counted.
std::string odd_tokens(const Row& row, const Row& given) {
  const std::size_t count = row.size();
  if (count > 1 && is_all(row, row[0])) return fmt::format("every token has position {}", row[0]);
  std::size_t same = 0;
  while (same < count && row[same] == given[same]) ++same;
  bool is_twice = same > 1, is_still = same > 1;
  for (std::size_t i = same; i < count; ++i) {
    is_twice = is_twice && row[i] == 2 * given[i];
    is_still = is_still && row[i] == 0;
  }
  // by position: of a long sequence only a part is examined
  const auto range = [&](std::size_t from, std::size_t to) {
    return from == to ? fmt::format("the token at position {} is", given[to])
                      : fmt::format("the tokens at positions {} to {} are", given[from], given[to]);
  };
  if (same < count && is_twice) return fmt::format("{} rotated twice, those before once", range(same, count - 1));
  if (same < count && is_still) return fmt::format("{} not rotated, those before are", range(same, count - 1));
  // the same from the other end
  std::size_t right = count;
  while (right > 0 && row[right - 1] == given[right - 1]) --right;
  is_twice = is_still = right > 0 && right < count;
  for (std::size_t i = 0; i < right; ++i) {
    is_twice = is_twice && row[i] == 2 * given[i];
    is_still = is_still && row[i] == 0;
  }
  if (is_twice && right > 1) return fmt::format("{} rotated twice, those after once", range(0, right - 1));
  if (is_still && right > 1) return fmt::format("{} not rotated, those after are", range(0, right - 1));
  return "";
}

}  // namespace

std::string pattern_of(const Samples& samples, Convention& found) {
  const std::vector<Row> rows = rows_of(samples, found);
  const bool is_one = std::all_of(rows.begin(), rows.end(), [&](const Row& row) { return row == rows.front(); });
  if (!is_one) return odd_ones(rows);
  const Row& row = rows.front();
  Row given = samples.axes.front().positions;
  if (!samples.has_known_positions) {
    // counted from where the first token is
    for (std::int64_t& id : given) id += row[0];
  }
  bool is_bf16 = true, is_exact = true;
  for (std::size_t i = 0; i < row.size(); ++i) {
    is_bf16 = is_bf16 && row[i] == rounded_position(AngleKind::kBf16Positions, given[i]);
    is_exact = is_exact && row[i] == given[i];
  }
  if (is_bf16 && !is_exact) {
    found.numerics = AngleKind::kBf16Positions;
    found.is_numerics_sure = true;
    found.first_position = samples.has_known_positions ? 0 : row[0];
    found.positions.clear();
    return "";
  }
  return odd_tokens(row, given);
}

}  // namespace posenc::diagnosis
