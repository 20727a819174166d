#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "posenc/json.h"
#include "posenc/schemes/rope_scaling.h"
#include "posenc/tensor.h"

namespace posenc::lab {

/// A small pre-norm Transformer with GELU and tied embeddings, and its positional encoding.
struct Shape {
  std::int64_t layers = 2, heads = 4, width = 64;
  std::int64_t vocabulary = 0;
  bool causal = true;           ///< a decoder; false: an encoder
  std::int64_t context = 32;    ///< tokens of a training sequence
  std::int64_t longest = 256;   ///< maximum sequence length, for tables of limited length
  std::string scheme = "rope";  ///< one of trainable_schemes()
  /// n: the positions of each sequence are drawn without replacement from 0 … n − 1 and sorted (Ruoss et al., 2023);
  /// 0: they are 0, 1, 2 …
  std::int64_t random_positions = 0;
  RopeScaling scaling = NoScaling{};  ///< of RoPE, for evaluation and fine-tuning

  std::int64_t head_width() const { return width / heads; }
  /// All positions are below this.
  std::int64_t position_limit() const { return random_positions > 0 ? random_positions : longest; }
  bool operator==(const Shape&) const = default;
};

/// none, sinusoidal, learned, rope, xpos, alibi, t5, kerple, fire.
const std::vector<std::string_view>& trainable_schemes();

/// "rope", "rope + random positions".
std::string title_of(const Shape& shape);

/// Throws: Error that names the field and the rule.
void check(const Shape& shape);
void check_between(std::string_view field, std::int64_t value, std::int64_t least, std::int64_t most);

/// All fields. Throws: Error for a field that is missing or invalid.
Json to_json(const Shape& shape);
Shape shape_from_json(const Json& json);

/// The RoPE scaling that extends a model from `trained` tokens by a factor: none, linear, ntk, yarn, llama3.
/// Throws: Error for any other name.
RopeScaling extension_named(std::string_view name, double factor, std::int64_t trained);
const std::vector<std::string_view>& extension_names();

/// A parameter tensor.
struct Slice {
  std::string name;
  Extents shape;
  std::int64_t offset = 0, count = 0;
  double deviation = 0;  ///< of its initial values, which are normally distributed; 0: all are `start`
  double start = 0;
  bool decays = false;  ///< whether weight decay applies
  bool is_position = false;
  std::uint32_t stream = 0;  ///< random stream of its initial values: the same with every scheme
};

/// The offset of each tensor within the parameters; all offsets are multiples of 16 elements.
struct Layout {
  std::vector<Slice> slices;
  std::int64_t count = 0;

  /// Throws: Error for an unknown name.
  const Slice& operator[](std::string_view name) const;
};
Layout layout_of(const Shape& shape);

/// The number of trained parameters, without padding.
std::int64_t parameter_count(const Layout& layout);

/// Initial values from a seed.
template <class T> std::vector<T> initial_parameters(const Layout& layout, std::uint64_t seed);

}  // namespace posenc::lab
