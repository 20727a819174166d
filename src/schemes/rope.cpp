#include "posenc/schemes/rope.h"

#include <cmath>
#include <limits>

#include "forms/compiled_once-inl.h"
#include "schemes/check.h"
#include "schemes/scalings/scaling.h"

namespace posenc {

template class Boxed<RopeScaling>;

namespace {

using numerics::Real;

void check(const Rope& s) {
  schemes::check_between(Rope::name, "dims", s.dims, 2, schemes::kWidthLimit);
  if (s.dims % 2 != 0) raise(fmt::format("rope: dims must be even but is {}", s.dims));
  if (!(s.base > 1.0 && s.base <= 1e36)) {
    raise(fmt::format("rope: base must be above 1 and at most 1e36 but is {}", s.base));
  }
  if (s.sign != 1 && s.sign != -1) raise(fmt::format("rope: sign must be 1 or -1 but is {}", s.sign));
  schemes::check_between(Rope::name, "first_dim", s.first_dim, -schemes::kWidthLimit, schemes::kWidthLimit);
  if (s.sections.empty()) return;
  schemes::check_between(Rope::name, "the number of sections", static_cast<std::int64_t>(s.sections.size()), 1, 8);
  std::int64_t sum = 0;
  for (const std::int64_t section : s.sections) {
    schemes::check_between(Rope::name, "a section", section, 0, s.dims / 2);
    sum += section;
  }
  if (sum != s.dims / 2) {
    raise(fmt::format("rope: sections must sum to {} pairs (dims/2) but sum to {}", s.dims / 2, sum));
  }
  const bool equal = s.section_order == SectionOrder::kEvenOdd || s.section_order == SectionOrder::kBlocks;
  for (const std::int64_t section : s.sections) {
    if (!equal || section == s.sections.front()) continue;
    raise(fmt::format("rope: sections must be equal for section_order {} but are {} and {}",
                      choice_name(s.section_order), s.sections.front(), section));
  }
}

// The axis that drives a pair, and the frequency of which spectrum it uses.
struct PairSource {
  std::int64_t axis = 0;
  std::int64_t frequency = 0;
  std::int64_t spectrum = 0;
};

// Whether each axis has its own frequencies, spread over its own features.
bool has_own_spectra(const Rope& s) {
  const bool own = s.section_order == SectionOrder::kRestarting || s.section_order == SectionOrder::kBlocks;
  return own && !s.sections.empty();
}

std::vector<PairSource> sources_of(const Rope& s) {
  const std::int64_t pairs = s.dims / 2;
  const auto axes = static_cast<std::int64_t>(s.sections.size());
  std::vector<PairSource> sources(pairs);
  std::int64_t chunk = 0, chunk_start = 0, chunk_end = s.sections.empty() ? pairs : s.sections.front();
  for (std::int64_t i = 0; i < pairs; ++i) {
    PairSource& source = sources[i];
    source.frequency = i;
    if (axes == 0) continue;
    while (i >= chunk_end) {
      chunk_start = chunk_end;
      chunk_end += s.sections[++chunk];
    }
    switch (s.section_order) {
      case SectionOrder::kChunked:
        source.axis = chunk;
        break;
      case SectionOrder::kInterleaved:
        source.axis = i < axes * s.sections[i % axes] ? i % axes : 0;
        break;
      case SectionOrder::kAlternating:
        source.axis = axes > 1 && i < pairs - s.sections.front() ? 1 + i % (axes - 1) : 0;
        break;
      case SectionOrder::kEvenOdd:
        source = {chunk, i % s.sections.front() * axes + chunk, 0};
        break;
      case SectionOrder::kRestarting:
      case SectionOrder::kBlocks:
        source = {chunk, i - chunk_start, chunk};
        break;
    }
  }
  return sources;
}

// One spectrum, or one per axis; that of an axis without pairs is empty.
template <class N> std::vector<schemes::Scaled<N>> scaled_spectra(const Rope& s, std::int64_t length) {
  std::vector<schemes::Scaled<N>> spectra;
  const auto add = [&](std::int64_t dims) {
    const schemes::Spectrum<N> spectrum{dims, s.base, length};
    spectra.push_back(std::visit([&](const auto& scaling) { return scaled(scaling, spectrum); }, *s.scaling));
  };
  if (!has_own_spectra(s)) {
    add(s.dims);
    return spectra;
  }
  for (const std::int64_t section : s.sections) {
    if (section == 0) {
      spectra.emplace_back();
    } else {
      add(2 * section);
    }
  }
  return spectra;
}

// ggml's own arithmetic: one ratio, multiplied from pair to pair, then its scaling of the angle.
Float32Angles ggml_angles(const Rope& s, const schemes::Scaled<Real>& spectrum,
                          const std::vector<PairSource>& sources) {
  if (s.section_order == SectionOrder::kEvenOdd && !s.sections.empty()) {
    raise("rope: ggml-f32 multiplies from pair to pair, which section_order even-odd does not allow");
  }
  for (const std::int64_t section : s.sections) {
    if (!has_own_spectra(s) || section == s.sections.front()) continue;
    raise(fmt::format("rope: ggml-f32 restarts after equal numbers of pairs, but sections are {} and {}",
                      s.sections.front(), section));
  }
  const std::int64_t dims = has_own_spectra(s) ? 2 * s.sections.front() : s.dims;
  const Real base = spectrum.base == 0 ? Real(s.base) : spectrum.base;
  const float ratio =
      numerics::nearest_float(pow(Real(numerics::nearest_float(base)), Real(-2.0f / static_cast<float>(dims))));
  const std::vector<Real> unscaled = schemes::inverse_periods<Real>(base, dims);
  Float32Angles angles;
  angles.chain = dims / 2;
  angles.factors.assign(sources.size(), ratio);
  for (std::size_t i = 0; i < sources.size(); i += static_cast<std::size_t>(dims / 2)) angles.factors[i] = 1.0f;
  for (const PairSource& source : sources) {
    const std::size_t at = source.frequency;
    const Real kept = spectrum.kept.empty() ? Real(0) : spectrum.kept[at];
    const Real explained = unscaled[at] * (spectrum.scale * (1 - kept) + kept);
    angles.blends.push_back({spectrum.frequencies[at] == 0
                                 ? std::numeric_limits<float>::infinity()
                                 : numerics::nearest_float(explained / spectrum.frequencies[at]),
                             numerics::nearest_float(spectrum.scale), numerics::nearest_float(kept)});
  }
  return angles;
}

}  // namespace

LengthNeed Rope::needs_length() const {
  const auto ask = []<class S>(const S&) {
    return requires { S::needs_length; }
    ? LengthNeed::kSequence : LengthNeed::kNone;
  };
  return std::visit(ask, *scaling);
}

Rotation prepare(const Rope& s, const PrepareOptions& options) {
  check(s);
  const std::vector<PairSource> sources = sources_of(s);
  const auto spectra = scaled_spectra<Real>(s, options.length);
  const auto& first = spectra[sources.front().spectrum];

  Rotation rotation;
  rotation.layout = s.layout;
  rotation.first_dim = s.first_dim;
  rotation.sign = static_cast<int>(s.sign);
  rotation.position_axes = s.sections.empty() ? 1 : static_cast<int>(s.sections.size());
  if (s.section_order == SectionOrder::kBlocks && !s.sections.empty()) rotation.blocks = rotation.position_axes;
  rotation.magnitude = first.magnitude;
  rotation.softmax_factor = first.softmax_factor;
  rotation.precision = options.precision;
  PairWaves waves;
  waves.growth.centre = first.growth.centre;
  for (const PairSource& source : sources) {
    const auto& spectrum = spectra[source.spectrum];
    const std::size_t at = source.frequency;
    const std::int64_t denominator =
        schemes::denominator_of(Rope::name, options, source.axis, rotation.position_axes);
    // before whole turns are dropped: a whole turn for position 1 is not one for 1/2
    rotation.frequencies.push_back(numerics::frequency_from(schemes::over(spectrum.frequencies[at], denominator)));
    if (!spectrum.growth.rates.empty()) {
      if (denominator != 1) raise("rope: xpos counts from a whole position, so positions cannot be fractions");
      waves.growth.rates.push_back(spectrum.growth.rates[at]);
    }
    if (rotation.position_axes > 1) waves.axes.push_back(static_cast<std::uint8_t>(source.axis));
  }
  if (options.numerics == Numerics::kHfF32) {
    const auto narrow = scaled_spectra<float>(s, options.length);
    for (const PairSource& source : sources) {
      waves.float32_angles.factors.push_back(narrow[source.spectrum].frequencies[source.frequency]);
    }
  } else if (options.numerics == Numerics::kGgmlF32) {
    waves.float32_angles = ggml_angles(s, first, sources);
  }
  rotation.source = std::move(waves);
  return rotation;
}

}  // namespace posenc
