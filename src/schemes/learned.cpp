#include "posenc/schemes/learned.h"

#include "schemes/check.h"

namespace posenc {

Addition prepare(const Learned& scheme, const Situation& now) {
  constexpr std::int64_t kRowLimit = kPositionLimit;
  schemes::check_between(Learned::name, "rows", scheme.rows, 1, kRowLimit);
  schemes::check_between(Learned::name, "width", scheme.width, 1, schemes::kWidthLimit);
  schemes::check_between(Learned::name, "offset", scheme.offset, 0, scheme.rows - 1);
  if (now.weights.data == nullptr) {
    raise(fmt::format("learned: the table [{}, {}] is missing; it is the caller's (Situation::weights)", scheme.rows,
                      scheme.width));
  }
  if (now.weights.shape != Extents{scheme.rows, scheme.width}) {
    raise(fmt::format("learned: the table must be [{}, {}] but is {}", scheme.rows, scheme.width,
                      to_string(now.weights.shape)));
  }
  return {scheme.width, Rows{now.weights, scheme.offset}};
}

}  // namespace posenc
