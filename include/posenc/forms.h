#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "posenc/frequency.h"
#include "posenc/tensor.h"

namespace posenc {

/// Which angle is meant. `kExact` is the mathematical one. The others repeat, bit for bit, the float32
/// arithmetic that models were trained with, and then take the correctly rounded sine of that angle.
enum class Numerics : std::uint8_t { kExact, kHfF32, kGgmlF32 };

/// "exact", "hf-f32", "ggml-f32".
std::string_view name_of(Numerics numerics) noexcept;
/// Throws: Error for a name that is none of the above.
Numerics numerics_from(std::string_view name);

/// Angles in float32 radians, as engines make them, one factor for each wave. Empty: the exact angle is used.
///   chain = 0:  angle i = float(p) · factors[i]                                                  (Hugging Face)
///   chain = n:  angle i = ((float(p) · factors[k]) · factors[k+1]) … · factors[i], k the last multiple of n
///               up to i                                                                          (ggml)
/// Where `blends` has an entry for wave i, ggml's way of scaling follows: e = angle / divisor, s = e · scale,
/// angle = s · (1 − kept) + e · kept (or s alone where kept is 0).
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

/// Sines and cosines: every sinusoidal table there is, in any order of columns, over any axes.
struct Waves {
  std::vector<Wave> waves = {};
  std::vector<WaveColumn> columns = {};
  double scale = 1.0;  // multiplies every value before its one rounding
  int axes = 1;
  Float32Angles float32_angles = {};
  /// [waves, axes − 1]: frequencies on the axes after the first. Where they are there, every axis drives every wave, whose
  /// own frequency is that of the first: angle = Σ position · frequency over the axes.
  std::vector<Frequency> further = {};
};

/// Numbers that a scheme made and the copies of its form share. What a std::shared_ptr would be, without its header.
class SharedNumbers {
 public:
  SharedNumbers() noexcept = default;
  explicit SharedNumbers(std::vector<float> numbers);
  explicit SharedNumbers(std::vector<double> numbers);
  SharedNumbers(const SharedNumbers& other);
  SharedNumbers(SharedNumbers&& other) noexcept;
  SharedNumbers& operator=(SharedNumbers other) noexcept;
  ~SharedNumbers();
  const void* data() const noexcept;  ///< null: none

 private:
  struct Kept;
  Kept* kept_ = nullptr;  // owned
};

/// Rows of a table: learned positions, or any ready-made table.
struct Rows {
  ConstTensorView table = {};  // [rows, width], the caller's or the owner's
  std::int64_t offset = 0;     // position p reads row p + offset
  SharedNumbers owner = {};    // of a table that the scheme made (resized); without data: it is the caller's
};

/// Straight lines: column j is start[j] + position · step[j], in double.
struct Lines {
  std::vector<double> start = {};
  std::vector<double> step = {};
};

// The three std::variants of this header are structs of their own: std::visit, std::get and std::get_if take them as they are,
// and their copies are compiled once, in src/forms/, instead of in every file that includes this header.

/// What an addition adds.
struct AdditionSource : std::variant<Waves, Rows, Lines> {
  AdditionSource() noexcept;
  AdditionSource(Waves value);  // NOLINT(google-explicit-constructor): as std::variant's
  AdditionSource(Rows value);   // NOLINT(google-explicit-constructor): as std::variant's
  AdditionSource(Lines value);  // NOLINT(google-explicit-constructor): as std::variant's
  AdditionSource(const AdditionSource& other);
  AdditionSource(AdditionSource&& other) noexcept;
  AdditionSource& operator=(const AdditionSource& other);
  AdditionSource& operator=(AdditionSource&& other) noexcept;
  ~AdditionSource();
};

/// The form of a scheme that adds a vector to every token.
struct Addition {
  std::int64_t width = 0;
  AdditionSource source;
};

/// Where the two features of a pair stand among the d that are rotated.
enum class PairLayout : std::uint8_t {
  kHalves,               ///< [a a a a b b b b]: features i and i + d/2 (GPT-NeoX, Llama in Hugging Face)
  kInterleaved,          ///< [a b a b a b a b]: features 2i and 2i + 1 (GPT-J, Llama of Meta, GLM)
  kInterleavedToHalves,  ///< read as interleaved, written as halves (DeepSeek-V3 in Hugging Face)
  kHalvesToInterleaved,  ///< and back
};

/// Pair i is read from features i · step and i · step + apart, or written there.
struct PairPlaces {
  std::int64_t step = 1, apart = 1;
  bool operator==(const PairPlaces&) const = default;
};
struct PairPlacement {
  PairPlaces read, write;
};
/// Where the pairs of a block stand, counted from its first feature.
PairPlacement placement_of(PairLayout layout, std::int64_t pairs) noexcept;

/// Cosines and sines that the caller made, in place of frequencies. [rows, pairs]: position p reads row p.
/// [batch, sequence, pairs]: each token reads its own row, and positions are not asked. Need not be of length 1.
struct RotationTable {
  ConstTensorView cosines = {}, sines = {};
};

/// The types in which a rotation is done; engines differ. Unset: f32, or f64 where the tensor is f64.
struct Precision {
  std::optional<DataType> table = {};       ///< cosines and sines are rounded to this before use
  std::optional<DataType> arithmetic = {};  ///< every product and sum is rounded to this
  bool operator==(const Precision&) const = default;
};

/// A length that changes with position: pair i is multiplied by e^(rate[i] · (p − centre)), and where it rotates keys
/// by e^(−rate[i] · (p − centre)), so that scores depend on distance alone (xPos). Empty: no change.
struct Growth {
  std::vector<double> rates = {};
  std::int64_t centre = 0;
  bool operator==(const Growth&) const = default;
};

/// Cosines and sines that are weighted sums of waves, each head with weights of its own (FoPE). Pair j of head h has
///   cos φ → cosine_offsets[j] + Σ_i cosines[h, i, j] · cos φ_i,   sin φ → sine_offsets[j] + Σ_i sines[h, i, j] · sin φ_i
/// and the pairs after the first `mixed` have the offsets alone. They are no longer of length 1, so that this is a linear map
/// and no rotation. Sums are made in double, from the offset on, in the order of the waves, and rounded once.
struct Mixture {
  std::int64_t pairs = 0, mixed = 0;                           // pairs 0: there is no mixture
  std::vector<double> cosines = {}, sines = {};                // [heads, waves, mixed]
  std::vector<double> cosine_offsets = {}, sine_offsets = {};  // [pairs]; empty: 0
  bool operator==(const Mixture&) const = default;
};

/// The form of a scheme that rotates pairs of features by an angle that grows with position.
///
///   (a, b) → magnitude · (a cos φ − b sin φ,  b cos φ + a sin φ),   φ = sign · 2π · position · frequency
struct Rotation {
  /// One for each pair; [heads, pairs] where heads have their own, and with sums_axes [heads, pairs, axes]. With a mixture,
  /// one for each wave.
  std::vector<Frequency> frequencies = {};
  std::vector<std::uint8_t> axes = {};  // which position axis drives each pair; empty: the first drives all
  int position_axes = 1;
  PairLayout layout = PairLayout::kHalves;
  int blocks = 1;               // the rotated features are this many equal blocks, each laid out on its own
  std::int64_t first_dim = 0;   // first rotated feature of a head; negative: counted from the head's end
  int sign = 1;                 // −1: clockwise
  double magnitude = 1.0;       // multiplies cosines and sines before their one rounding
  double softmax_factor = 1.0;  // what attention multiplies its scale by, beside this rotation
  Growth growth = {};
  Float32Angles float32_angles = {};
  RotationTable table = {};
  Precision precision = {};
  std::int64_t heads = 1;  // heads that are rotated each in its own way: as many as the tensor has; 1: all alike
  bool sums_axes = false;  // every axis drives every pair, φ = Σ_axis position · frequency (RoPE-Mixed)
  Mixture mixture = {};
};

/// Whether the caller's cosines and sines stand in place of frequencies.
bool has_table(const Rotation& rotation) noexcept;
/// The number of pairs that a rotation rotates in a head.
std::int64_t pairs_of(const Rotation& rotation) noexcept;
/// Whether each pair is one wave, driven by one axis, in all heads alike, or a table: what every backend knows.
bool is_plain(const Rotation& rotation) noexcept;
/// The rotation of one head alone. Throws: Error for a head that is not there.
Rotation head_of(const Rotation& rotation, std::int64_t head);

/// The adjoint (transpose): what carries gradients back. Keeps the magnitude.
Rotation adjoint(const Rotation& rotation);
/// The rotation that undoes it: the adjoint with the magnitude inverted. Throws: Error for a magnitude of 0, and for
/// a table or a mixture, which need not have an inverse.
Rotation inverse(const Rotation& rotation);
/// The same for keys, where it differs: growth reversed.
Rotation for_keys(const Rotation& rotation);
/// From what `from` wrote to what `to` writes, exact to the last bit of the frequencies: for keys in a cache.
/// Throws: Error where the two do not rotate the same features, or where either has a table, a mixture or float32 angles.
Rotation between(const Rotation& from, const Rotation& to);

/// What a distance δ = key position − query position counts on one axis:
///   entry(δ) = entries[δ − first],  and past either end the last one there.
struct DistanceMap {
  std::int64_t first = 0;             // δ of the first entry
  std::vector<std::int64_t> entries;  // one for each δ from `first` on
  bool open = true;                   // false: no distance may lie past an end
  bool operator==(const DistanceMap&) const = default;
};

/// −slopes[h] · |δ|, in double (ALiBi). One axis.
struct Slopes {
  std::vector<double> slopes;  // one for each head
};

/// table[row, h], where row is the sum of the entries of all axes: every bias that depends on distance alone.
struct DistanceTable {
  std::vector<DistanceMap> axes;  // one for each position axis
  ConstTensorView weights;        // [rows, heads], the caller's; where it has no data:
  std::vector<double> values;     // [rows, heads], made by the scheme
};
/// The table of either kind. It lives as long as what it looks at.
ConstTensorView table_of(const DistanceTable& source, std::int64_t heads) noexcept;

/// An entry of a map for a distance at which there is no vector: nothing is added there.
inline constexpr std::int64_t kNoRow = -1;

/// Vectors picked by distance: at each axis one row of the table, or none, and their sum counts.
struct VectorsByDistance {
  std::vector<DistanceMap> axes;  // one for each position axis
  ConstTensorView table;       // [rows, features], the same for all heads, or [heads, rows, features], the caller's;
  std::vector<double> values;  // where it has no data, made by the scheme; where this is empty too, there are none
  Extents shape = {};          // of the values
};
/// The table of either kind, without data where there is none. It lives as long as what it looks at.
ConstTensorView table_of(const VectorsByDistance& vectors) noexcept;

/// score(m, n) = factor · scale · (q_m·k_n + (q_m + c)·A[δ] + k_n·B[δ]),   out_m = Σ_n weight(m, n) · (v_n + C[δ])
/// Needs q and k, so only attention can add it (Shaw, DeBERTa, Transformer-XL).
struct DistanceVectors {
  VectorsByDistance for_queries;           // A
  VectorsByDistance for_keys;              // B
  double softmax_factor = 1.0;             // what attention multiplies its scale by
  VectorsByDistance for_values = {};       // C, of as many features as values have
  std::vector<double> query_offsets = {};  // c, [heads, features]; empty: 0
  bool is_scaled = true;         // false: products with A and B are not multiplied by factor and scale (SAM)
  bool has_own_queries = false;  // A meets AttentionOptions::position_queries in place of q (Inkling)
};
/// How many features the vectors that queries meet have; 0: there are none.
std::int64_t query_features_of(const DistanceVectors& source) noexcept;

/// A learned map of a distance relative to the query's position, in double (FIRE). One axis; m is the query's
/// position.
///   x = logs[|δ|] / (max(logs[m], least) + epsilon)
///   bias(h) = output_biases[h] + Σ_j output_weights[h, j] · max(0, hidden_weights[j] · x + hidden_biases[j])
struct DistanceRatios {
  std::vector<double> logs;  // ψ(0), ψ(1) …: positions and distances must be below its size
  double least = 0.0;
  double epsilon = 0.0;
  std::vector<double> hidden_weights, hidden_biases;  // [width]
  std::vector<double> output_weights, output_biases;  // [heads, width], [heads]
};

/// c_m − c_n, where c_t = g_0 + … + g_t and g is AttentionOptions::log_gates: every token after the key, up to the
/// query's own, multiplies the key's weight by its gate (Forgetting Transformer). Tokens count by their order; positions
/// are not read.
struct GateSums {};

/// Positions that a query counts itself: each key from n to the last that it sees counts as its gate (CoPE).
///   x(m, n) = softcap(scale · q_m·k_n) + mask
///   p(m, n) = min(Σ_{t ≥ n} σ(x(m, t)), rows − 1), over the keys that m sees
///   score(m, n) = x(m, n) + (1 − w) · q_m·E[⌊p⌋] + w · q_m·E[⌈p⌉],   w = p − ⌊p⌋
/// Tokens count by their order; positions are not read.
struct CountedGates {
  ConstTensorView table;  // E, [rows, features], the same for all heads, or [heads, rows, features]; the caller's
};

/// What a bias adds.
struct BiasSource : std::variant<Slopes, DistanceTable, DistanceVectors, DistanceRatios, GateSums, CountedGates> {
  BiasSource() noexcept;
  BiasSource(Slopes value);           // NOLINT(google-explicit-constructor): as std::variant's
  BiasSource(DistanceTable value);    // NOLINT(google-explicit-constructor): as std::variant's
  BiasSource(DistanceVectors value);  // NOLINT(google-explicit-constructor): as std::variant's
  BiasSource(DistanceRatios value);   // NOLINT(google-explicit-constructor): as std::variant's
  BiasSource(GateSums value);         // NOLINT(google-explicit-constructor): as std::variant's
  BiasSource(CountedGates value);     // NOLINT(google-explicit-constructor): as std::variant's
  BiasSource(const BiasSource& other);
  BiasSource(BiasSource&& other) noexcept;
  BiasSource& operator=(const BiasSource& other);
  BiasSource& operator=(BiasSource&& other) noexcept;
  ~BiasSource();
};

/// The form of a scheme that adds a number to every attention score, by the distance of key and query.
/// It is added after the scale, before the softmax. What may look at what is the mask's business, not the bias's.
struct Bias {
  std::int64_t heads = 0;  // 0: the same for however many there are (vectors that heads share)
  BiasSource source;
};

/// Whether it needs q and k, or gates, so that only attention can add it.
bool needs_content(const Bias& bias) noexcept;
/// The bias of one head alone. It looks at what the whole looks at.
/// Throws: Error for a head that is not there.
Bias head_of(const Bias& bias, std::int64_t head);

/// How the factor of a query follows from its position p.
enum class TemperatureRule : std::uint8_t {
  kSteps,   ///< 1 + scale · ln(1 + ⌊(p + shift) / length⌋)
  kLog,     ///< 1 + scale · ln(max(1, (p + shift) / length))
  kTokens,  ///< scale · ln(p + shift)
};
/// A factor on queries that depends on their position, beside any form: a temperature of the softmax.
struct Temperature {
  double scale = 0.1;
  std::int64_t length = 8192;
  std::int64_t shift = 0;  ///< Llama 4, Inkling and SSMax: 1; Ministral 3 and Mistral 4: 0
  TemperatureRule rule = TemperatureRule::kSteps;
  std::vector<double> head_scales = {};  ///< in place of scale, where each head has its own (SSMax)
  bool operator==(const Temperature&) const = default;
};
/// Its value at a position of 0 or more. Error: a few units of double's last bit.
double factor_at(const Temperature& temperature, std::int64_t position, std::int64_t head = 0) noexcept;
/// What its scale multiplies there: the derivative of the factor.
double logarithm_at(const Temperature& temperature, std::int64_t position) noexcept;
/// "1 + 0.1 ln(1 + floor((p + 1) / 8192))".
std::string to_string(const Temperature& temperature);
/// Throws: Error that begins with the verb, for a length, shift or scale out of range.
void check_temperature(std::string_view verb, const Temperature& temperature);

/// The form of a scheme that neither adds, rotates nor biases. It may still scale queries.
struct Nothing {
  std::optional<Temperature> temperature = {};
};

/// What a scheme becomes, and all that kernels know of it.
struct Form : std::variant<Nothing, Addition, Rotation, Bias> {
  Form() noexcept;
  Form(Nothing value);   // NOLINT(google-explicit-constructor): as std::variant's
  Form(Addition value);  // NOLINT(google-explicit-constructor): as std::variant's
  Form(Rotation value);  // NOLINT(google-explicit-constructor): as std::variant's
  Form(Bias value);      // NOLINT(google-explicit-constructor): as std::variant's
  Form(const Form& other);
  Form(Form&& other) noexcept;
  Form& operator=(const Form& other);
  Form& operator=(Form&& other) noexcept;
  ~Form();
};

/// Puts another trained table in place of the one that the form reads; nothing is computed. `key_weights` replaces
/// the vectors that keys meet, where the form has them (DeBERTa), `value_weights` those that are added to values; without
/// data, they stay.
/// Throws: Error for a form that reads no table of the caller's, and for a table of another shape.
void bind(Addition& form, ConstTensorView weights);
void bind(Bias& form, ConstTensorView weights, ConstTensorView key_weights = {}, ConstTensorView value_weights = {});
/// Call it with its namespace, posenc::bind(form, table): std::bind takes anything.
void bind(Form& form, ConstTensorView weights, ConstTensorView key_weights = {}, ConstTensorView value_weights = {});

// --- what kernels, figures and stories ask of a form ------------------------------------------------------------

/// How many coordinates a position of this form has.
int position_axes_of(const Addition& addition) noexcept;
int position_axes_of(const Rotation& rotation) noexcept;
int position_axes_of(const Bias& bias) noexcept;
int position_axes_of(const Form& form) noexcept;

/// The waves of a form that adds them, or nullptr.
const Waves* waves_of(const Addition& addition) noexcept;
const Waves* waves_of(const Form& form) noexcept;
/// A rotation's cosines and sines as columns of waves: the cosines of all pairs, then the sines, head by head. With float32
/// angles the magnitude is left out: engines multiply by it after they have rounded. Of a mixture, the waves that it mixes,
/// without magnitude and sign.
Waves waves_of(const Rotation& rotation);
/// The same, into waves whose memory is used again.
void set_waves(Waves& waves, const Rotation& rotation);

/// Radians per position of each wave or pair, without sign: the float32 factors where these are the angle, else the
/// doubles nearest to the exact frequencies.
std::vector<double> frequencies_of(const Waves& waves);
std::vector<double> frequencies_of(const Rotation& rotation);

}  // namespace posenc
