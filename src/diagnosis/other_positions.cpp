#include <algorithm>
#include <cmath>

#include "diagnosis/rotations.h"

namespace posenc::diagnosis {
namespace {

// Heads of one sequence.
struct Group {
  std::int64_t first = 0, end = 0;
};
std::vector<Group> groups_of(const Samples& samples) {
  std::vector<Group> groups;
  for (std::int64_t head = 0; head < samples.heads; ++head) {
    const std::size_t at = head;
    if (head == 0 || samples.sequence_of[at] != samples.sequence_of[at - 1]) groups.push_back({head, head});
    groups.back().end = head + 1;
  }
  return groups;
}

// A scheme that explains one half of a sequence's tokens, as if there were no others.
std::optional<Diagnosis> of_a_half(const Samples& samples, const std::vector<Group>& groups) {
  const std::int64_t half = samples.sequence / 2;
  for (const Group& group : {groups.front(), groups.back()}) {
    for (const auto& [first, end] : {std::pair{samples.sequence - half, samples.sequence}, {std::int64_t{0}, half}}) {
      const Samples part = part_of(samples, {group.first, group.end, first, end});
      if (part.change <= 4 * part.rounding * part.rounding * part.energy) continue;
      Diagnosis found = explain_by_rotation(part);
      const bool is_found = found.verdict == Verdict::kSure || found.verdict == Verdict::kLikely;
      if (is_found && !found.best->is_reversed && found.best->position_factor == 1) return found;
    }
  }
  return std::nullopt;
}

class Finder {
 public:
  Finder(const Samples& samples, const Convention& convention)
      : samples_(samples),
        convention_(convention),
        rope_(std::get<Rope>(convention.scheme)),
        frequencies_(frequencies_of(rope_)) {
    // swapped sine and cosine rotate in the opposite direction, plus a quarter turn
    if (convention.is_swapped) {
      for (double& frequency : frequencies_) frequency = -frequency;
    }
  }

  // The position that best explains a token of a sequence, and the energy that then remains unexplained.
  struct Found {
    std::int64_t position = 0;
    double unexplained = 0;
  };
  Found find(const Group& group, std::int64_t token, std::int64_t least, std::int64_t most) const {
    std::vector<std::complex<double>> products(frequencies_.size());
    for (std::size_t i = 0; i < products.size(); ++i) {
      const Place place = place_of_pair(i);
      for (std::int64_t head = group.first; head < group.end; ++head) {
        products[i] += std::conj(samples_.read(head, token, place)) * samples_.written(head, token, place);
      }
    }
    Found best;
    double largest = -1;
    for (std::int64_t position = least; position <= most; ++position) {
      double sum = 0;
      for (std::size_t i = 0; i < products.size(); ++i)
        sum += (std::conj(rotation_at(i, position)) * products[i]).real();
      if (sum > largest) {
        largest = sum;
        best.position = position;
      }
    }
    for (std::size_t i = 0; i < products.size(); ++i) {
      const Place place = place_of_pair(i);
      const std::complex<double> rotation = convention_.magnitude * rotation_at(i, best.position);
      for (std::int64_t head = group.first; head < group.end; ++head) {
        best.unexplained +=
            std::norm(samples_.written(head, token, place) - rotation * samples_.read(head, token, place));
      }
    }
    return best;
  }

 private:
  std::complex<double> rotation_at(std::size_t pair, std::int64_t position) const {
    const std::complex<double> plain = std::polar(1.0, frequencies_[pair] * static_cast<double>(position));
    return convention_.is_swapped ? std::complex<double>(-plain.imag(), plain.real()) : plain;
  }
  Place place_of_pair(std::size_t pair) const {
    return place_of(rope_.layout, rope_.dims, rope_.first_dim, static_cast<std::int64_t>(pair));
  }

  const Samples& samples_;
  const Convention& convention_;
  Rope rope_;
  std::vector<double> frequencies_;
};

}  // namespace

std::optional<Diagnosis> explain_by_other_positions(const Samples& samples) {
  constexpr std::int64_t kFewestTokens = 12, kFewestDims = 8;
  if (samples.axes.size() > 1 || samples.sequence < kFewestTokens) return std::nullopt;
  const std::vector<Group> groups = groups_of(samples);
  std::optional<Diagnosis> result = of_a_half(samples, groups);
  if (!result || std::get<Rope>(result->best->scheme).dims < kFewestDims) return std::nullopt;
  Convention& best = *result->best;
  const std::int64_t span = samples.last_position() - samples.first_position();
  const std::int64_t middle = best.first_position + (samples.has_known_positions ? samples.first_position() : 0);
  const Finder finder(samples, best);
  double unexplained = 0;
  for (const Group& group : groups) {
    for (std::int64_t token = 0; token < samples.sequence; ++token) {
      const Finder::Found found = finder.find(group, token, middle - span - 8, middle + 2 * span + 8);
      best.positions.push_back(found.position);
      unexplained += found.unexplained;
    }
  }
  const Rope& rope = std::get<Rope>(best.scheme);
  for (std::size_t i = 0; i < samples.after.size(); ++i) {
    const auto feature = static_cast<std::int64_t>(i) % samples.features;
    const double change = samples.after[i] - samples.before[i];
    const bool is_outside = feature < rope.first_dim || feature >= rope.first_dim + rope.dims;
    if (is_outside) unexplained += change * change;
  }
  // each token has its own position to be explained by: no more than rounding may remain
  if (unexplained > 16 * samples.rounding * samples.rounding * samples.energy) return std::nullopt;
  best.residual = std::sqrt(unexplained / samples.change);
  best.first_position = 0;
  result->others.clear();
  if (std::string pattern = pattern_of(samples, best); !pattern.empty())
    result->remarks.push_back(std::move(pattern));
  return result;
}

}  // namespace posenc::diagnosis
