#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "posenc/compiled_once.h"
#include "posenc/frequency.h"
#include "posenc/tensor.h"
#include "posenc/terms/list.h"
#include "posenc/terms/numbered.h"

namespace posenc {

/// How angles are computed. `kExact` is the mathematical angle. The others reproduce, bit for bit, the float32
/// arithmetic that models were trained with, and then take the correctly rounded sine of that angle.
enum class Numerics : std::uint8_t { kExact, kHfF32, kGgmlF32 };

/// "exact", "hf-f32", "ggml-f32".
std::string_view name_of(Numerics numerics) noexcept;
/// Throws: Error for any other name.
Numerics numerics_from(std::string_view name);

/// Angles in float32 radians, as engines compute them, with one factor per wave. Empty: the exact angle is used.
///   chain = 0:  angle i = float(p) · factors[i]                                                  (Hugging Face)
///   chain = n:  angle i = ((float(p) · factors[k]) · factors[k+1]) … · factors[i], k the largest multiple of n
///               not above i                                                                      (ggml)
/// If `blends` has an entry for wave i, ggml's scaling follows: e = angle / divisor, s = e · scale,
/// angle = s · (1 − kept) + e · kept (or just s if kept is 0).
struct Float32Angles {
  struct Blend {
    float divisor = 1.0f, scale = 1.0f, kept = 0.0f;
    bool operator==(const Blend&) const = default;
  };
  std::vector<float> factors = {};
  std::int64_t chain = 0;
  std::vector<Blend> blends = {};  // empty: none
  bool operator==(const Float32Angles&) const = default;
};

/// One oscillation, driven by one axis of the position.
struct Wave {
  Frequency frequency = {};
  std::uint8_t axis = 0;
  bool operator==(const Wave&) const = default;
};

/// A column of a table of waves: sin(2π(position · frequency + quarter / 4)).
/// quarter 0 is the sine, 1 the cosine. A wave of frequency 0 with quarter 0 is a column of zeros.
struct WaveColumn {
  std::int32_t wave = 0;
  std::uint8_t quarter = 0;
  bool operator==(const WaveColumn&) const = default;
};

/// Sines and cosines: a sinusoidal table with its columns in any order, over any number of axes.
struct Waves {
  std::vector<Wave> waves = {};
  std::vector<WaveColumn> columns = {};
  double scale = 1.0;  // multiplies every value before it is rounded (once)
  int axes = 1;
  Float32Angles float32_angles = {};
  /// [waves, axes − 1]: frequencies on the axes after the first. If present, every axis drives every wave, and the
  /// frequency in `waves` is that of the first axis: angle = Σ position · frequency over the axes. Empty: one axis per wave.
  std::vector<Frequency> further = {};
};

/// Numbers that a scheme computed and that copies of its form share.
struct SharedNumbers;
extern template class Boxed<SharedNumbers>;
Boxed<SharedNumbers> shared(std::vector<float> numbers);
Boxed<SharedNumbers> shared(std::vector<double> numbers);
const void* data_of(const Boxed<SharedNumbers>& numbers) noexcept;  ///< null: none

/// Rows of a table: learned positions, or any precomputed table.
struct Rows {
  ConstTensorView table = {};       // [rows, width], in the caller's memory or the owner's
  std::int64_t offset = 0;          // position p reads row p + offset
  Boxed<SharedNumbers> owner = {};  // holds a table that the scheme computed (resized); none: the caller's table
};

/// Straight lines: column j is start[j] + position · step[j], in double.
struct Lines {
  std::vector<double> start = {};
  std::vector<double> step = {};
};

/// What an addition adds.
using AdditionSource = OneOf<std::variant<Waves, Rows, Lines>>;

/// The form of a scheme that adds a vector to every token.
struct Addition {
  std::int64_t width = 0;
  AdditionSource source;
};

/// Which features form a pair, among the d that are rotated.
enum class PairLayout : std::uint8_t {
  kHalves,               ///< [a a a a b b b b]: features i and i + d/2 (GPT-NeoX, Llama in Hugging Face)
  kInterleaved,          ///< [a b a b a b a b]: features 2i and 2i + 1 (GPT-J, Meta's Llama, GLM)
  kInterleavedToHalves,  ///< read as interleaved, written as halves (DeepSeek-V3 in Hugging Face)
  kHalvesToInterleaved,  ///< the reverse
};

/// Pair i is read from features i · step and i · step + apart, or written there.
struct PairPlaces {
  std::int64_t step = 1, apart = 1;
  bool operator==(const PairPlaces&) const = default;
};
struct PairPlacement {
  PairPlaces read, write;
};
/// Where the pairs of a block are, relative to its first feature.
PairPlacement placement_of(PairLayout layout, std::int64_t pairs) noexcept;

/// Cosines and sines computed by the caller, instead of frequencies. [rows, pairs]: position p reads row p.
/// [batch, sequence, pairs]: each token reads its own row, and positions are ignored. cos² + sin² need not be 1.
struct RotationTable {
  ConstTensorView cosines = {}, sines = {};
};

/// The types in which a rotation is computed; engines differ here. Unset: f32, or f64 if the tensor is f64.
struct Precision {
  std::optional<DataType> table = {};       ///< cosines and sines are rounded to this before use
  std::optional<DataType> arithmetic = {};  ///< every product and sum is rounded to this
  bool operator==(const Precision&) const = default;
};

/// A magnitude that changes with position: pair i of a query is multiplied by e^(rate[i] · (p − centre)), and of a key by
/// e^(−rate[i] · (p − centre)), so that position enters scores only through the offset (xPos). Empty: constant magnitude.
struct Growth {
  std::vector<double> rates = {};
  std::int64_t centre = 0;
  bool operator==(const Growth&) const = default;
};

/// Cosines and sines that are weighted sums of waves, with separate weights for each head (FoPE). Pair j of head h has
///   cos φ → cosine_offsets[j] + Σ_i cosines[h, i, j] · cos φ_i,   sin φ → sine_offsets[j] + Σ_i sines[h, i, j] · sin φ_i
/// and the pairs after the first `mixed` have only the offsets. Since cos² + sin² is no longer 1, this is a linear map, not
/// a rotation. Sums are computed in double, starting with the offset, in the order of the waves, and rounded once.
struct Mixture {
  std::int64_t heads = 1;
  std::int64_t pairs = 0, mixed = 0;
  std::vector<double> cosines = {}, sines = {};                // [heads, waves, mixed]
  std::vector<double> cosine_offsets = {}, sine_offsets = {};  // [pairs]; empty: 0
  bool operator==(const Mixture&) const = default;
};

/// One wave per pair, the same in all heads.
struct PairWaves {
  std::vector<std::uint8_t> axes = {};  // which position axis drives each pair; empty: the first axis drives all
  Growth growth = {};
  Float32Angles float32_angles = {};
};

/// Each head has waves of its own, and every axis drives every pair: φ = Σ_axis position · frequency (RoPE-Mixed).
struct HeadWaves {
  std::int64_t heads = 1;
};

/// Where a rotation's cosines and sines come from.
using RotationSource = OneOf<std::variant<PairWaves, HeadWaves, Mixture, RotationTable>>;

/// The form of a scheme that rotates pairs of features by an angle that grows with position.
///
///   (a, b) → magnitude · (a cos φ − b sin φ,  b cos φ + a sin φ),   φ = sign · 2π · position · frequency
struct Rotation {
  std::vector<Frequency> frequencies = {};  // one per pair; HeadWaves: [heads, pairs, axes]; a mixture: one per wave
  int position_axes = 1;
  PairLayout layout = PairLayout::kHalves;
  int blocks = 1;               // the rotated features form this many equal blocks, each with `layout`
  std::int64_t first_dim = 0;   // first rotated feature of a head; negative: counted from the end of the head
  int sign = 1;                 // −1: clockwise
  double magnitude = 1.0;       // multiplies cosines and sines before they are rounded (once)
  double softmax_factor = 1.0;  // multiplies the scale of attention that uses this rotation
  Precision precision = {};
  RotationSource source = {};
};

/// Whether the rotation uses the caller's cosines and sines instead of frequencies.
bool has_table(const Rotation& rotation) noexcept;
/// Parts of the source, empty if it is another kind.
const RotationTable& table_of(const Rotation& rotation) noexcept;
const PairWaves& pair_waves_of(const Rotation& rotation) noexcept;
/// Whether the magnitude changes with position.
bool has_growth(const Rotation& rotation) noexcept;
bool has_float32_angles(const Rotation& rotation) noexcept;
/// The number of pairs per head that are rotated.
std::int64_t pairs_of(const Rotation& rotation) noexcept;
/// 1: all heads share one rotation; otherwise each head has its own, as many as the tensor has.
std::int64_t heads_of(const Rotation& rotation) noexcept;
/// The position axis that drives a pair, the first for rotations that are not driven by one axis per pair.
std::size_t axis_of(const Rotation& rotation, std::size_t pair) noexcept;
/// Whether the source is PairWaves or a table: the kinds that every backend supports.
bool is_plain(const Rotation& rotation) noexcept;
/// The rotation of a single head. Throws: Error for a head that the rotation does not have.
Rotation head_of(const Rotation& rotation, std::int64_t head);
/// The rotation of heads first, first + 1 … first + count − 1, for a process that has only these (tensor parallelism). A rotation
/// that all heads share remains as it is. Throws: Error for heads that the rotation does not have.
Rotation slice_heads(const Rotation& rotation, std::int64_t first, std::int64_t count);

/// The adjoint (transpose), which propagates gradients backwards. Keeps the magnitude.
Rotation adjoint(const Rotation& rotation);
/// The rotation that undoes it: the adjoint with the magnitude inverted. Throws: Error for a magnitude of 0, and for
/// a table or a mixture, which need not have an inverse.
Rotation inverse(const Rotation& rotation);
/// The rotation of keys, which differs if there is growth: the growth is reversed.
Rotation for_keys(const Rotation& rotation);
/// The rotation that turns what `from` produced into what `to` produces, with exact frequencies: for keys in a cache.
/// Throws: Error if the two rotate different features, or if either has a table, a mixture or float32 angles.
Rotation between(const Rotation& from, const Rotation& to);

/// The terms of posenc/terms/list.h, which are what a bias can add: std::variant<Slopes, DistanceTable, …>.
using BiasTerms = TermsFrom<0>::Type;

/// What a bias adds.
using BiasSource = OneOf<BiasTerms>;

/// The form of a scheme that adds a number to every attention score, usually a function of the distance between key and
/// query. It is added after scaling and before the softmax. Which keys a query attends to is up to the mask, not the bias.
struct Bias {
  std::int64_t heads = 0;  // 0: any number of heads (vectors shared by all heads)
  BiasSource source;
};

/// Whether the bias depends on q and k or on gates, so that only attention can add it.
bool needs_content(const Bias& bias) noexcept;
/// What attention needs for a bias beside q, k and v.
struct BiasInputs {
  bool log_gates = false;
  bool position_queries = false;
  std::int64_t position_query_features = 0;
};
BiasInputs inputs_of(const Bias& bias) noexcept;
/// What multiplies the scale of attention that adds this bias.
double softmax_factor_of(const Bias& bias) noexcept;
/// The bias of a single head. It refers to the same memory as the original.
/// Throws: Error for a head that the bias does not have.
Bias head_of(const Bias& bias, std::int64_t head);
/// The same of heads first, first + 1 … first + count − 1.
Bias slice_heads(const Bias& bias, std::int64_t first, std::int64_t count);

/// How a query's factor depends on its position p.
enum class TemperatureRule : std::uint8_t {
  kSteps,   ///< 1 + scale · ln(1 + ⌊(p + shift) / length⌋)
  kLog,     ///< 1 + scale · ln(max(1, (p + shift) / length))
  kTokens,  ///< scale · ln(p + shift)
};
/// A factor on each query that depends on its position and works with any form: a temperature of the softmax.
struct Temperature {
  double scale = 0.1;
  std::int64_t length = 8192;
  std::int64_t shift = 0;  ///< Llama 4, Inkling and SSMax: 1; Ministral 3 and Mistral 4: 0
  TemperatureRule rule = TemperatureRule::kSteps;
  std::vector<double> head_scales = {};  ///< instead of scale: one per head (SSMax)
  bool operator==(const Temperature&) const = default;
};
/// The factor at a position of 0 or more. Error: a few ulp of double.
double factor_at(const Temperature& temperature, std::int64_t position, std::int64_t head = 0) noexcept;
/// The derivative of the factor with respect to the scale: the logarithm that the scale multiplies.
double logarithm_at(const Temperature& temperature, std::int64_t position) noexcept;
/// "1 + 0.1 ln(1 + floor((p + 1) / 8192))".
std::string to_string(const Temperature& temperature);
/// Throws: Error that begins with the verb, for a length, shift or scale out of range.
void check_temperature(std::string_view verb, const Temperature& temperature);

/// The form of a scheme that neither adds, rotates nor biases. It may still scale queries.
struct Nothing {
  std::optional<Temperature> temperature = {};
};

/// What `prepare` turns a scheme into, and all that kernels know about it.
using Form = OneOf<std::variant<Nothing, Addition, Rotation, Bias>>;

/// The form of heads first, first + 1 … first + count − 1 of any form: an addition, and what all heads share, remains as it is.
/// It refers to the same memory as the original. Throws: Error for heads that the form does not have.
Form slice_heads(const Form& form, std::int64_t first, std::int64_t count);

/// Replaces the trained table that the form reads by another one; nothing is recomputed. `key_weights` replaces the
/// vectors dotted with keys, if the form has them (DeBERTa), and `value_weights` those added to values; tables passed
/// without data stay as they are.
/// Throws: Error for a form that does not read a table of the caller's, and for a table of a different shape.
void bind(Addition& form, ConstTensorView weights);
void bind(Bias& form, ConstTensorView weights, ConstTensorView key_weights = {}, ConstTensorView value_weights = {});
/// Call it as posenc::bind(form, table): an unqualified call may find std::bind, which accepts any arguments.
void bind(Form& form, ConstTensorView weights, ConstTensorView key_weights = {}, ConstTensorView value_weights = {});

// --- queries about a form, used by kernels, figures and stories -------------------------------------------------

/// The number of coordinates of a position for this form.
int position_axes_of(const Addition& addition) noexcept;
int position_axes_of(const Rotation& rotation) noexcept;
int position_axes_of(const Bias& bias) noexcept;
int position_axes_of(const Form& form) noexcept;

/// The waves of an addition made of waves, or nullptr.
const Waves* waves_of(const Addition& addition) noexcept;
const Waves* waves_of(const Form& form) noexcept;
/// A rotation's cosines and sines as columns of waves: for each head, the cosines of all pairs, then the sines. With float32
/// angles the magnitude is omitted, because engines multiply by it after rounding. For a mixture: the waves that it mixes,
/// without magnitude and sign.
Waves waves_of(const Rotation& rotation);
/// The same, into an existing object whose memory is reused.
void set_waves(Waves& waves, const Rotation& rotation);

/// The radians per position of each wave or pair, without sign: the float32 factors if angles are float32, otherwise the
/// doubles nearest to the exact frequencies.
std::vector<double> frequencies_of(const Waves& waves);
std::vector<double> frequencies_of(const Rotation& rotation);

}  // namespace posenc
