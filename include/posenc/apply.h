#pragma once

#include "posenc/forms.h"
#include "posenc/positions.h"
#include "posenc/tensor.h"

namespace posenc {

// All tensors of a call, and the tables of its form, must be on the same device. On a GPU, a call enqueues its work on
// run.stream and returns at once. It allocates GPU memory only for the numbers of a form that the process has not used
// before, which are kept (so call once before capturing a CUDA graph), and, for the duration of the call, for ids in host
// memory.

/// out[i, :] = the vector of position i. out is [sequence, width] or [batch, sequence, width], any strides,
/// f32, f64, f16 or bf16.
/// Error: waves are correctly rounded to f32, f16 and bf16 (0.5 ulp, one rounding from the exact value) and
///   within 0.501 ulp in f64, so the bytes are the same on every machine; rows are copied; lines are
///   rounded once from double.
/// Range: |p| < 2^53, on a GPU 0 ≤ p < 2^53; for rows, p ≥ 0 and p + offset < rows.
/// Throws: Error if a shape, type or position is invalid; `out` is then unmodified.
void tabulate(TensorView out, const Positions& positions, const Addition& form, const Run& run = {});

/// The cosines and sines of a rotation, including magnitude, sign and growth: both [sequence, pairs] or [batch, sequence,
/// pairs], any strides and type.
/// Error: as above; with growth, within 1 ulp of f32; for a mixture, that of its sums in double.
/// Throws: as above; also for a form that is already a table, and for one that differs from head to head (use head_of).
void tabulate(TensorView cosines, TensorView sines, const Positions& positions, const Rotation& form,
              const Run& run = {});

/// x += the vector of its position. x is [..., sequence, width], any strides; Positions.ids may hold one list
/// for all sequences or one per sequence. f32, f16, bf16: the vector is computed (or read) in f32, added in f32 and
/// rounded to x's type; f64: in f64.
/// Range, Throws: as for tabulate.
void add(TensorView x, const Positions& positions, const Addition& form, const Run& run = {});

/// out = x + the vector of its position. out has x's shape and type, and either is x or does not overlap it.
void add(TensorView out, ConstTensorView x, const Positions& positions, const Addition& form, const Run& run = {});

/// The gradient of a learned table: d_table[p + offset, :] += Σ d_out[token at p, :].
/// Each row's sum is computed in double in the order of the tokens, then added and rounded once, so the result is
/// bit-identical for any number of threads even if positions repeat.
/// d_table is [rows, width], d_out [..., sequence, width]; offset as in Rows.
/// Range, Throws: as for tabulate.
void add_backward(TensorView d_table, ConstTensorView d_out, const Positions& positions, std::int64_t offset = 0,
                  const Run& run = {});

/// Queries and keys, rotated in one pass. Keys may have fewer heads (GQA); batch and sequence must be equal.
template <class View> struct QueryKey { View q, k; };

/// Rotates the pairs of features in x by the angles of their positions, in place. x is [batch, heads, sequence, features],
/// [heads, sequence, features] or [sequence, features] in any strides; for another axis order, pass it:
/// rotate(view(q, {tokens, heads, features}), Axes::kThd, …). Features outside the rotary dimensions are left unchanged.
/// f32, f16, bf16: cosines and sines are f32, correctly rounded with the magnitude included (within 1 ulp with growth; the
/// sums of a mixture are computed in double); the two products and their sum are each rounded to f32, and the result to
/// x's type. f64: in f64. Rotation::precision selects other types, as some engines use. Bit-identical on every machine.
/// If the form differs from head to head, x must have as many heads; a GPU has no kernel for such forms, for summed axes
/// or for mixtures.
/// Error: f32, at most 2 ulp of the larger product.
/// Range: |p| < 2^53, on a GPU 0 ≤ p < 2^53; with a table, its rows.
/// Throws: Error for a shape, type, position or form that is invalid; x is then left unchanged.
void rotate(TensorView x, const Positions& positions, const Rotation& form, const Run& run = {});
void rotate(TensorView x, Axes axes, const Positions& positions, const Rotation& form, const Run& run = {});
/// Keys are rotated by for_keys(form).
void rotate(const QueryKey<TensorView>& x, const Positions& positions, const Rotation& form, const Run& run = {});
void rotate(const QueryKey<TensorView>& x, Axes axes, const Positions& positions, const Rotation& form,
            const Run& run = {});

/// The largest distance from the centre at which values still fit float32; infinite without growth.
double range_of(const Growth& growth) noexcept;

/// Writes to an output of x's shape and any type, which either is x or does not overlap it.
void rotate(TensorView out, ConstTensorView x, const Positions& positions, const Rotation& form, const Run& run = {});
void rotate(const QueryKey<TensorView>& out, const QueryKey<ConstTensorView>& x, const Positions& positions,
            const Rotation& form, const Run& run = {});

/// The gradient of rotate with respect to x: rotates d_out by adjoint(form), in place.
void rotate_backward(TensorView d_out, const Positions& positions, const Rotation& form, const Run& run = {});
void rotate_backward(TensorView d_out, Axes axes, const Positions& positions, const Rotation& form,
                     const Run& run = {});

/// A tensor before its rotation, and the gradient that rotate_backward or attention_backward computed for it.
struct RotatedGradient {
  ConstTensorView x, d_x;
};
/// The gradient of trained frequencies (RoPE-Mixed), in radians per position: for a pair (a, b) of x,
///   d_frequencies[its frequency] += Σ position · (a · d_b − b · d_a)
/// over the tokens, and over the heads that share a frequency. Call it for queries and for keys. d_frequencies is [pairs],
/// [heads, pairs] or, with summed axes, [heads, pairs, axes], in any strides, f32 or f64; x and d_x are as for rotate, on
/// the host. Sums are computed in double, in the order of batch and tokens.
/// Throws: Error for a shape, type or position that is invalid, and for a table, a mixture, growth and float32 angles.
void frequencies_backward(TensorView d_frequencies, const RotatedGradient& gradient, const Positions& positions,
                          const Rotation& form);

/// Converts cached keys rotated by `from` to what `to` would have produced, in place. Exact angles: a single rotation by
/// the difference. float32 angles: rotates back by `from`, then forward by `to`, with a rounding in between.
/// Throws: as rotate, and if the two rotate different features.
void rerotate(TensorView x, const Positions& positions, const Rotation& from, const Rotation& to,
              const Run& run = {});

/// out[h, i, j] = what the form adds to the score of query i and key j in head h, as an explicit array; attention does
/// not need it. out is [heads, queries, keys] or [batch, heads, queries, keys], any strides, f32, f64, f16 or bf16.
/// Positions.ids may hold one list for all sequences or one per sequence.
/// Error: slopes and learned maps are computed in double and rounded once to out's type; tables are copied, rounded
///   once. Bit-identical on every backend.
/// Range: |p| < 2^53 (on a GPU and for learned maps, p ≥ 0), and distances that the form was prepared for.
/// Throws: Error for a shape, type, position or form that is invalid, and for forms that depend on q and k or on gates;
///   out is then left unchanged.
void bias(TensorView out, const Positions& queries, const Positions& keys, const Bias& form, const Run& run = {});

/// The gradient of the form's parameters, added to d_parameters; d_out has the shape of `out` above.
///   slopes: [heads];  a table: [rows, heads];  a learned map: [n], the concatenation of hidden weights, hidden biases,
///   output weights and output biases
/// Sums are computed in double in the order of batch, queries and keys, then added and rounded once: bit-identical for
/// any number of threads. On a GPU they are computed in double in another order, which depends only on the shapes. From
/// here to a scheme's own parameters (KERPLE), see `backward` in its header. Range, Throws: as for bias.
void bias_backward(TensorView d_parameters, ConstTensorView d_out, const QueryKey<Positions>& positions,
                   const Bias& form, const Run& run = {});

}  // namespace posenc
