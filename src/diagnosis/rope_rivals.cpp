#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <optional>
#include <utility>

#include "diagnosis/candidates.h"
#include "diagnosis/rivals.h"
#include "posenc/schemes/choice.h"

namespace posenc::diagnosis {
namespace {

std::string plain_number(double value) { return fmt::format("{}", value); }

// Which position axis drives each pair.
std::vector<std::uint8_t> axes_of_pairs(const Rope& rope) { return pair_waves_of(prepare(rope, {.length = 1})).axes; }

// Collects rivals of one scheme.
class RopeRivals {
 public:
  RopeRivals(const Rope& rope, const RivalInputs& inputs, std::vector<Rival>& list)
      : rope_(rope), inputs_(inputs), list_(list) {}

  // A port that has `other` where `expected` belongs, in a field of this name.
  void field(std::string_view name, const std::string& expected, const std::string& other, const Rope& port) {
    if (port == rope_) return;
    list_.push_back({.name = fmt::format("{} {}", name, other),
                     .from = fmt::format("{} {}", name, expected),
                     .to = other,
                     .change = fmt::format("{}: expected {}, got {}", name, expected, other),
                     .scheme = port});
  }
  void number(std::string_view name, double expected, double other, const Rope& port) {
    field(name, plain_number(expected), plain_number(other), port);
  }

  void places() {
    if (rope_.dims > 2) {
      for (const PairLayout layout : {PairLayout::kHalves, PairLayout::kInterleaved, PairLayout::kInterleavedToHalves,
                                      PairLayout::kHalvesToInterleaved}) {
        Rope port = rope_;
        port.layout = layout;
        field("pairs", std::string(choice_name(rope_.layout)), std::string(choice_name(layout)), port);
        if (layout == rope_.layout) continue;
        const std::int64_t pairs = rope_.dims / 2;
        list_.back().is_equivalent = placement_of(layout, pairs).read == placement_of(rope_.layout, pairs).read;
      }
    }
    Rope port = rope_;
    port.sign = -rope_.sign;
    const auto direction = [](std::int64_t sign) { return sign > 0 ? "counter-clockwise" : "clockwise"; };
    field("direction", direction(rope_.sign), direction(port.sign), port);
    list_.back().change += ". Negate the sine";
    const std::int64_t features = inputs_.features, first = first_feature();
    if (rope_.dims < features && rope_.sections.empty()) {
      port = rope_;
      port.first_dim = first == 0 ? features - rope_.dims : 0;
      number("first rotary dimension", static_cast<double>(first), static_cast<double>(port.first_dim), port);
    }
    // lists by pair have the length of these dims
    if (!rope_.sections.empty() || std::holds_alternative<LongropeScaling>(*rope_.scaling)) return;
    for (const std::int64_t dims : {features / 2 * 2, rope_.dims / 4 * 2}) {
      if (dims < 2 || first + dims > features) continue;
      port = rope_;
      port.dims = dims;
      number("rotary dimensions", static_cast<double>(rope_.dims), static_cast<double>(dims), port);
    }
    if (rope_.dims < features) {
      port = rope_;
      port.base = std::pow(rope_.base, static_cast<double>(rope_.dims) / static_cast<double>(features));
      list_.push_back({.name = "an exponent over the whole head",
                       .from = "an exponent over the rotary dimensions",
                       .to = "one over the whole head",
                       .change = fmt::format("The exponent is divided by the head dimension, {}. Divide it by the {} "
                                             "rotary dimensions",
                                             features, rope_.dims),
                       .scheme = port});
    }
  }

  // The nearest bases that models have on both sides, and the one that a default supplies.
  void bases() {
    double below = 0, above = 0;
    for (const double base : known_bases()) {
      if (base < rope_.base && base > below) below = base;
      if (base > rope_.base && (above == 0 || base < above)) above = base;
    }
    for (const double base : {below, above, 10000.0}) {
      if (base == 0 || (base == 10000.0 && (below == base || above == base))) continue;
      Rope port = rope_;
      port.base = base;
      number("base", rope_.base, base, port);
    }
  }

  void exponent() {
    Rope port = rope_;
    port.base = std::sqrt(rope_.base);
    if (!(port.base > 1)) return;
    list_.push_back({.name = "an exponent of i for 2i",
                     .from = "an exponent of 2i",
                     .to = "one of i",
                     .change = "The exponent has i where 2i belongs",
                     .scheme = port});
  }

  void sections() {
    if (rope_.sections.size() < 2) return;
    const bool is_fixed = rope_.section_order == SectionOrder::kRestarting ||
                          rope_.section_order == SectionOrder::kBlocks ||
                          rope_.section_order == SectionOrder::kEvenOdd;
    if (!is_fixed) {
      assignments();
      list_.push_back({.name = "an image whose height and width count from 0",
                       .from = "positions of an image after its text",
                       .to = "height and width that count from 0",
                       .change = "All axes but the first lack the offset of the image: they count from 0. Add the "
                                 "position at which it starts",
                       .scheme = rope_,
                       .placing = Placing::kNoOffset});
    }
    swaps();
    list_.push_back({.name = "positions of the first axis for all",
                     .from = "positions of several axes",
                     .to = "those of the first axis",
                     .change = "Every axis has the positions of the first. Give each axis its own",
                     .scheme = rope_,
                     .axes = std::vector<std::size_t>(rope_.sections.size())});
    list_.push_back({.name = "positions that count tokens",
                     .from = "positions of several axes",
                     .to = "the number of the token",
                     .change =
                         "Every axis has the number of the token: text positions for an image. Pass the positions "
                         "of all axes",
                     .scheme = rope_,
                     .placing = Placing::kCounted});
  }

  // Other pairs for each axis. One pair more or less for an axis is the least that can be wrong: whatever else is, is
  // wrong there as well.
  void assignments() {
    const std::size_t axes = rope_.sections.size();
    std::vector<std::vector<std::uint8_t>> known = {axes_of_pairs(rope_)};
    const auto list = [](const Rope& rope) { return fmt::format("{}", fmt::join(rope.sections, " ")); };
    const auto add = [&](const auto& change) {
      Rope port = rope_;
      change(port);
      if (*std::min_element(port.sections.begin(), port.sections.end()) < 0) return;
      const std::vector<std::uint8_t> map = axes_of_pairs(port);
      if (std::find(known.begin(), known.end(), map) != known.end()) return;
      known.push_back(map);
      const bool is_order = port.section_order != rope_.section_order;
      const auto name = [](const Rope& rope) { return std::string(choice_name(rope.section_order)); };
      field(is_order ? "order of sections" : "sections", is_order ? name(rope_) : list(rope_),
            is_order ? name(port) : list(port), port);
    };
    for (std::size_t turn = 1; turn < axes; ++turn) {
      add([&](Rope& port) {
        std::rotate(port.sections.begin(), port.sections.begin() + static_cast<std::ptrdiff_t>(turn),
                    port.sections.end());
      });
    }
    for (const SectionOrder order :
         {SectionOrder::kChunked, SectionOrder::kInterleaved, SectionOrder::kAlternating}) {
      add([&](Rope& port) { port.section_order = order; });
    }
    for (std::size_t one = 0; one < axes; ++one) {
      for (std::size_t other = 0; other < axes; ++other) {
        if (one == other) continue;
        add([&](Rope& port) {
          ++port.sections[one];
          --port.sections[other];
        });
      }
    }
  }

  // Two axes of the positions exchanged.
  void swaps() {
    const std::size_t axes = rope_.sections.size();
    static constexpr std::array<std::string_view, 3> kNames = {"time", "height", "width"};
    const auto name = [&](std::size_t axis) {
      return axes > kNames.size() ? fmt::format("axis {}", axis) : std::string(kNames[axis + kNames.size() - axes]);
    };
    for (std::size_t one = axes - 1; one-- > 0;) {
      for (std::size_t other = axes - 1; other > one; --other) {
        std::vector<std::size_t> swapped(axes);
        std::iota(swapped.begin(), swapped.end(), 0);
        std::swap(swapped[one], swapped[other]);
        list_.push_back(
            {.name = fmt::format("{} and {} swapped", name(one), name(other)),
             .from = fmt::format("{} and {}", name(one), name(other)),
             .to = "the two swapped",
             .change = fmt::format("The positions of {} and {} are swapped. Swap them back", name(one), name(other)),
             .scheme = rope_,
             .axes = swapped});
      }
    }
  }

  void numerics() {
    struct Named {
      AngleKind kind;
      const char *name, *from, *change;
    };
    static constexpr std::array<Named, 5> kKinds = {
        {{AngleKind::kBf16Frequencies, "bf16 frequencies", "float32 frequencies",
          "Frequencies are in bf16. Keep them in float32"},
         {AngleKind::kF16Frequencies, "f16 frequencies", "float32 frequencies",
          "Frequencies are in f16. Keep them in float32"},
         {AngleKind::kBf16Positions, "bf16 positions", "integer positions",
          "Positions are in bf16. Keep them as integers"},
         {AngleKind::kBf16Angles, "bf16 angles", "float32 angles",
          "Angles, position times frequency, are in bf16. Compute them in float32"},
         {AngleKind::kF16Angles, "f16 angles", "float32 angles",
          "Angles, position times frequency, are in f16. Compute them in float32"}}};
    if (std::holds_alternative<XposScaling>(*rope_.scaling)) return;
    for (const Named& one : kKinds) {
      // integers up to 256 are exact in bf16: below, there is nothing that could be wrong
      if (one.kind == AngleKind::kBf16Positions && inputs_.last_position <= 256) continue;
      list_.push_back({.name = one.name,
                       .from = one.from,
                       .to = one.name,
                       .change = one.change,
                       .scheme = rope_,
                       .angles = one.kind});
    }
  }

  void turnings() {
    list_.push_back({.name = "sine and cosine swapped",
                     .from = "sine and cosine",
                     .to = "the two swapped",
                     .change = "Sine and cosine are swapped. Swap them back",
                     .scheme = rope_,
                     .turning = Turning::kSwapped});
    list_.push_back(
        {.name = "rotate_half without its minus",
         .from = "rotate_half",
         .to = "one without its minus",
         .change = "The first of each pair gains b·sin where it must lose it: rotate_half lacks its minus",
         .scheme = rope_,
         .turning = Turning::kNoMinus});
    if (rope_.dims <= 4) return;
    list_.push_back({.name = "cosines in the order of the other pairs",
                     .from = "cosines in the order of the pairs",
                     .to = "those in the other order",
                     .change = "Cosines and sines are in the order of other pairs (repeat_interleave for halves, or "
                               "cat for interleaved). Arrange them as the pairs are",
                     .scheme = rope_,
                     .turning = Turning::kOtherCosines});
  }

  template <class Scaling> Rope with(const Scaling& scaling) const {
    Rope port = rope_;
    port.scaling = scaling;
    return port;
  }

  // A port that leaves the scaling out.
  void unscaled(std::string_view kind) {
    list_.push_back({.name = fmt::format("no {} scaling", kind),
                     .from = fmt::format("{} scaling", kind),
                     .to = "none",
                     .change = fmt::format("scaling: expected {}, got none", kind),
                     .scheme = with(NoScaling{})});
  }
  // Half and twice a field of the scaling.
  template <class Scaling, class Number>
  void near(std::string_view name, const Scaling& scaling, Number Scaling::*member, double least) {
    for (const double factor : {0.5, 2.0}) {
      Scaling port = scaling;
      const double value = static_cast<double>(scaling.*member) * factor;
      if (!(value > least)) continue;
      port.*member = static_cast<Number>(value);
      number(name, static_cast<double>(scaling.*member), static_cast<double>(port.*member), with(port));
    }
  }
  template <class Scaling> void magnitude(const Scaling& scaling, double other) {
    const double natural = prepare(rope_, {.length = 1}).magnitude;
    if (std::fabs(natural - other) < 1e-9) return;
    Scaling port = scaling;
    port.attention_factor = other;
    field("magnitude", fmt::format("{:.6g}", natural), fmt::format("{:.6g}", other), with(port));
  }

  // A scaling that has no mistakes of its own here can still be left out.
  template <class Other> void of(const Other&) {}
  void of(const LinearScaling& one) { near("factor", one, &LinearScaling::factor, 1.0); }
  void of(const NtkScaling& one) { near("factor", one, &NtkScaling::factor, 1.0); }
  void of(const NtkFixedScaling& one) { near("factor", one, &NtkFixedScaling::factor, 1.0); }
  void of(const AlphaScaling& one) { near("alpha", one, &AlphaScaling::alpha, 1.0); }
  void of(const XposScaling& one) { near("scale_base", one, &XposScaling::scale_base, 1.0); }
  void of(const DynamicScaling& one) {
    near("factor", one, &DynamicScaling::factor, 1.0);
    near("original_length", one, &DynamicScaling::original_length, 1.0);
  }
  void of(const Llama3Scaling& one) {
    near("factor", one, &Llama3Scaling::factor, 1.0);
    near("original_length", one, &Llama3Scaling::original_length, 1.0);
  }
  void of(const YarnScaling& one) {
    near("factor", one, &YarnScaling::factor, 1.0);
    near("original_length", one, &YarnScaling::original_length, 1.0);
    YarnScaling port = one;
    port.truncate = !one.truncate;
    const auto word = [](bool value) { return value ? "true" : "false"; };
    field("truncate", word(one.truncate), word(port.truncate), with(port));
    const double natural = prepare(rope_, {.length = 1}).magnitude;
    magnitude(one, 1.0);
    magnitude(one, natural * natural);
    // the magnitude alone, on frequencies that are not scaled: as with a blend of no pairs
    port = one;
    port.factor = 1;
    port.attention_factor = natural;
    if (natural != 1) {
      list_.push_back({.name = "yarn magnitude without its frequencies",
                       .from = "yarn frequencies",
                       .to = "unscaled ones",
                       .change = "Frequencies are not scaled, only the magnitude is. Scale them by yarn",
                       .scheme = with(port)});
    }
    list_.push_back({.name = "linear instead of yarn",
                     .from = "yarn scaling",
                     .to = "linear",
                     .change = "scaling: expected yarn, got linear",
                     .scheme = with(LinearScaling{.factor = one.factor})});
  }
  void of(const LongropeScaling& one) {
    magnitude(one, 1.0);
    if (one.short_factors == one.long_factors) return;
    LongropeScaling port = one;
    std::swap(port.short_factors, port.long_factors);
    list_.push_back({.name = "the other list of factors",
                     .from = "the list of factors for this length",
                     .to = "the other",
                     .change = fmt::format("The other of short_factor and long_factor was used. Use long_factor for "
                                           "sequences above {} tokens (--length), short_factor below",
                                           one.original_length),
                     .scheme = with(port)});
  }
  void of(const ProportionalScaling& one) {
    near("proportion", one, &ProportionalScaling::proportion, 0.0);
    std::erase_if(list_, [](const Rival& rival) {
      const auto* const rope = std::get_if<Rope>(&rival.scheme);
      const auto* const scaling = rope == nullptr ? nullptr : std::get_if<ProportionalScaling>(&*rope->scaling);
      return scaling != nullptr && scaling->proportion > 1;
    });
  }

 private:
  std::int64_t first_feature() const {
    return rope_.first_dim < 0 ? inputs_.features + rope_.first_dim : rope_.first_dim;
  }

  const Rope& rope_;
  const RivalInputs& inputs_;
  std::vector<Rival>& list_;
};

}  // namespace

void add_rope_rivals(const Rope& rope, const RivalInputs& inputs, std::vector<Rival>& list) {
  RopeRivals rivals(rope, inputs, list);
  std::visit(
      [&](const auto& scaling) {
        if (!std::holds_alternative<NoScaling>(*rope.scaling)) rivals.unscaled(scaling.name);
        rivals.of(scaling);
      },
      *rope.scaling);
  rivals.places();
  rivals.bases();
  rivals.exponent();
  rivals.sections();
  rivals.turnings();
  rivals.numerics();
}

}  // namespace posenc::diagnosis
