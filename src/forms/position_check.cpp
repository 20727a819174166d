#include "posenc/position_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "posenc/error.h"

namespace posenc {
namespace {

// The ids of one comparison; `is_token` is empty if all are tokens.
struct ComparedIds {
  std::span<const std::int64_t> got, expected, is_token;
  std::int64_t columns = 0;

  bool is_compared(std::size_t i) const { return is_token.empty() || is_token[i] != 0; }
};

PositionCheck compared(const ComparedIds& ids) {
  PositionCheck check;
  for (std::size_t i = 0; i < ids.got.size(); ++i) {
    if (!ids.is_compared(i)) continue;
    ++check.tokens;
    if (ids.got[i] == ids.expected[i]) continue;
    const auto at = static_cast<std::int64_t>(i);
    if (check.differing++ == 0) check.first = {at / ids.columns, at % ids.columns, ids.expected[i], ids.got[i]};
  }
  return check;
}

// Whether the ids of all tokens are those that `rule` gives, whose argument is a token's index.
template <class Rule> bool are_all(const ComparedIds& ids, const Rule& rule) {
  for (std::size_t i = 0; i < ids.got.size(); ++i) {
    if (ids.is_compared(i) && ids.got[i] != rule(i)) return false;
  }
  return true;
}

// By how much all tokens are off; 0 if not all by the same.
std::int64_t common_shift(const ComparedIds& ids, const PositionDifference& first) {
  const std::int64_t shift = first.got - first.expected;
  return are_all(ids, [&](std::size_t i) { return ids.expected[i] + shift; }) ? shift : 0;
}

std::string shift_text(std::int64_t shift) {
  return fmt::format("every token is at {} position{} {}", shift < 0 ? -shift : shift,
                     shift == 1 || shift == -1 ? "" : "s",
                     shift < 0 ? "before the expected one" : "past the expected one");
}

}  // namespace

PositionCheck check_positions(std::span<const std::int64_t> ids, std::span<const std::int64_t> mask,
                              const MaskOptions& options) {
  if (ids.size() != mask.size()) {
    raise(fmt::format("there are {} position ids and {} entries of the mask", ids.size(), mask.size()));
  }
  const std::vector<std::int64_t> expected = positions_from_mask(mask, options);
  const std::int64_t columns = std::ssize(ids) / std::max<std::int64_t>(options.batch, 1);
  const ComparedIds both{ids, expected, mask, std::max<std::int64_t>(columns, 1)};
  PositionCheck check = compared(both);
  // padding in front of the last token of a row changes the positions after it
  bool has_inner_padding = false;
  for (std::size_t i = 0; i + 1 < mask.size(); ++i) {
    const bool is_row_end = (static_cast<std::int64_t>(i) + 1) % both.columns == 0;
    has_inner_padding = has_inner_padding || (mask[i] == 0 && mask[i + 1] != 0 && !is_row_end);
  }
  if (!has_inner_padding) check.untested = "no token has padding before it: counting padding would give the same ids";
  if (check.differing == 0) return check;
  const auto by_column = [&](std::size_t i) { return static_cast<std::int64_t>(i) % both.columns; };
  const std::int64_t base = options.rule == MaskRule::kRoberta ? options.padding + 1 : 0;
  if (are_all(both, [&](std::size_t i) { return by_column(i) + base; })) {
    check.cause = "padding was counted: the ids are those of columns, not of tokens";
  } else if (base > 0 && are_all(both, by_column)) {
    check.cause = fmt::format("padding was counted, and the first position is 0 instead of {}", base);
  } else if (const std::int64_t shift = common_shift(both, *check.first); shift != 0) {
    check.cause = shift_text(shift);
  }
  return check;
}

PositionCheck check_packed_positions(std::span<const std::int64_t> ids, std::span<const std::int64_t> boundaries) {
  if (boundaries.empty() || boundaries.front() != 0) raise("the boundaries of packed sequences start with 0");
  std::vector<std::int64_t> lengths;
  for (std::size_t i = 1; i < boundaries.size(); ++i) {
    if (boundaries[i] < boundaries[i - 1]) {
      raise(fmt::format("the boundaries of packed sequences must not decrease: {} after {}", boundaries[i],
                        boundaries[i - 1]));
    }
    lengths.push_back(boundaries[i] - boundaries[i - 1]);
  }
  if (boundaries.back() != std::ssize(ids)) {
    raise(fmt::format("the last boundary is {}, but there are {} position ids", boundaries.back(), ids.size()));
  }
  const std::vector<std::int64_t> expected = packed_positions(lengths);
  const ComparedIds both{ids, expected, {}, std::max<std::int64_t>(std::ssize(ids), 1)};
  PositionCheck check = compared(both);
  const auto sequences = std::count_if(lengths.begin(), lengths.end(), [](std::int64_t one) { return one > 0; });
  if (sequences < 2) check.untested = "there is one sequence: ids that do not restart would be the same";
  if (check.differing == 0) return check;
  const auto in_a_row = [&](std::size_t i) { return static_cast<std::int64_t>(i) + ids.front(); };
  if (sequences > 1 && are_all(both, in_a_row)) {
    check.cause = "positions do not restart: the sequences were not told apart";
  } else if (const std::int64_t shift = common_shift(both, *check.first); shift != 0) {
    check.cause = shift_text(shift);
  } else {
    // restarts of their own, elsewhere
    for (std::size_t i = 1; i < ids.size() && check.cause.empty(); ++i) {
      const bool restarts = ids[i] == ids.front(), should = expected[i] == 0;
      if (restarts == should) continue;
      check.cause = restarts ? fmt::format("positions restart at token {}, where no sequence starts", i)
                             : fmt::format("positions do not restart at token {}, where a sequence starts", i);
    }
  }
  return check;
}

}  // namespace posenc
