#pragma once

#include "posenc/forms.h"
#include "posenc/positions.h"
#include "posenc/tensor.h"

namespace posenc {

// Every tensor of a call, and the tables of its form, lie on one device. On a GPU a call is ordered on run.stream and
// returns at once. It allocates nothing but, for a form that is new to the process, a copy of its numbers, which is
// kept (so call once before a CUDA graph is captured), and for ids that lie on the host, a copy for the length of the
// call.

/// out[i, :] = the vector of position i. out is [sequence, width] or [batch, sequence, width], any strides,
/// f32, f64, f16 or bf16.
/// Error: waves are correctly rounded to f32, f16 and bf16 (0.5 ulp, one rounding from the exact value) and
///   within 0.501 ulp in f64, so the bytes are the same on every machine; rows are copied, lines are
///   rounded once from double.
/// Range: |p| < 2^53, on a GPU 0 ≤ p < 2^53; for rows, p ≥ 0 and p + offset < rows.
/// Throws: Error for a shape, type or position that does not fit; out is not touched then.
void tabulate(TensorView out, const Positions& positions, const Addition& form, const Run& run = {});

/// Cosines and sines of a rotation, magnitude, sign and growth included: both [sequence, pairs] or [batch, sequence,
/// pairs], any strides and type.
/// Error: as above, within 1 ulp of f32 where there is growth, and of a mixture that of its sums in double.
/// Throws: as above, for a form that is a table already, and for one of several heads (head_of takes one of them).
void tabulate(TensorView cosines, TensorView sines, const Positions& positions, const Rotation& form,
              const Run& run = {});

/// x += the vector of its position. x is [..., sequence, width], any strides; Positions.ids may hold one list
/// for all sequences or one for each. f32, f16, bf16: the vector is made (or read) in f32, added in f32 and
/// rounded to x's type; f64: in f64.
/// Range, Throws: as for tabulate.
void add(TensorView x, const Positions& positions, const Addition& form, const Run& run = {});

/// out = x + the vector of its position; out has x's shape and type and is x or does not overlap it.
void add(TensorView out, ConstTensorView x, const Positions& positions, const Addition& form, const Run& run = {});

/// The gradient of a learned table: d_table[p + offset, :] += Σ d_out[token at p, :].
/// Each row's sum is made in double in the order of the tokens, then added and rounded once, so repeated
/// positions give the same bytes for any number of threads.
/// d_table is [rows, width], d_out [..., sequence, width]; offset as in Rows.
/// Range, Throws: as for tabulate.
void add_backward(TensorView d_table, ConstTensorView d_out, const Positions& positions, std::int64_t offset = 0,
                  const Run& run = {});

/// Queries and keys that are rotated in one pass. Keys may have fewer heads (GQA); batch and sequence are the same.
template <class View> struct QueryKey { View q, k; };

/// Rotates the pairs of x by the angles of its positions. x is [batch, heads, sequence, features], [heads, sequence,
/// features] or [sequence, features] in any strides; in another order of axes, the call has its word:
/// rotate(view(q, {tokens, heads, features}), Axes::kThd, …). Features that are not rotated stay as they are.
/// f32, f16, bf16: cosines and sines are f32, correctly rounded with the magnitude in them (within 1 ulp where there
/// is growth; the sums of a mixture are made in double); the two products and their sum are each rounded to f32, and the
/// result to x's type. f64: in f64. The form's precision says otherwise where engines differ. Same bytes on every machine.
/// Error: f32, at most 2 ulp of the larger product.
/// Range: |p| < 2^53, on a GPU 0 ≤ p < 2^53, or rows of the form's table.
/// A form whose heads are rotated each in its own way wants as many heads in x; a GPU has no kernel for it, for summed axes and
/// for mixtures.
/// Throws: Error for a shape, type, position or form that does not fit; x is not touched then.
void rotate(TensorView x, const Positions& positions, const Rotation& form, const Run& run = {});
void rotate(TensorView x, Axes axes, const Positions& positions, const Rotation& form, const Run& run = {});
/// Keys take for_keys(form).
void rotate(const QueryKey<TensorView>& x, const Positions& positions, const Rotation& form, const Run& run = {});
void rotate(const QueryKey<TensorView>& x, Axes axes, const Positions& positions, const Rotation& form,
            const Run& run = {});

/// How far from its centre a growth may go, so that values stay in the range of float32; infinite where none grows.
double range_of(const Growth& growth) noexcept;

/// To an output of x's shape, of any type, that is x or does not overlap it.
void rotate(TensorView out, ConstTensorView x, const Positions& positions, const Rotation& form, const Run& run = {});
void rotate(const QueryKey<TensorView>& out, const QueryKey<ConstTensorView>& x, const Positions& positions,
            const Rotation& form, const Run& run = {});

/// The gradient: rotates d_out back, keeping the magnitude. rotate by adjoint(form).
void rotate_backward(TensorView d_out, const Positions& positions, const Rotation& form, const Run& run = {});
void rotate_backward(TensorView d_out, Axes axes, const Positions& positions, const Rotation& form,
                     const Run& run = {});

/// A tensor that is rotated, before it is, and the gradient of it, as rotate_backward and attention_backward make it.
struct RotatedGradient {
  ConstTensorView x, d_x;
};
/// The gradient of a rotation's frequencies, in radians per position, where they are trained (RoPE-Mixed): for a pair (a, b)
/// of x,
///   d_frequencies[its frequency] += Σ position · (a · d_b − b · d_a)
/// over the tokens, and the heads that share it. Call it for queries and for keys. d_frequencies is [pairs], [heads, pairs] or
/// with summed axes [heads, pairs, axes], in any strides, f32 or f64; x and d_x are as for rotate, on the host. Sums are made
/// in double, in the order of batch and tokens.
/// Throws: Error for a shape, type or position that does not fit, and for a table, a mixture, growth and float32 angles.
void frequencies_backward(TensorView d_frequencies, const RotatedGradient& gradient, const Positions& positions,
                          const Rotation& form);

/// Rotates keys of a cache, which `from` rotated, to what `to` would have made of them. Exact angles: one rotation by
/// their difference. float32 angles: back by `from`, then on by `to`, with a rounding between.
/// Throws: as rotate, and where the two do not rotate the same features.
void rerotate(TensorView x, const Positions& positions, const Rotation& from, const Rotation& to,
              const Run& run = {});

/// out[h, i, j] = what the form adds to the score of query i and key j in head h, for those who want it in memory;
/// attention needs no such array. out is [heads, queries, keys] or [batch, heads, queries, keys], any strides, f32,
/// f64, f16 or bf16. Positions.ids may hold one list for all sequences or one for each.
/// Error: slopes and learned maps are computed in double and rounded once to out's type; tables are copied, rounded
///   once. The same bytes on every backend.
/// Range: |p| < 2^53 (on a GPU and for learned maps, p ≥ 0), and no further apart than the form was prepared for.
/// Throws: Error for a shape, type, position or form that does not fit, and for vectors by distance, which need q and
///   k; out is not touched then.
void bias(TensorView out, const Positions& queries, const Positions& keys, const Bias& form, const Run& run = {});

/// The gradient of the form's parameters: d_parameters += its share of d_out, which is as `out` above.
///   slopes: [heads];  a table: [rows, heads];  a learned map: [n], hidden weights and biases, then output weights
///   and biases, one after the other
/// Sums are made in double in the order of batch, queries and keys, then added and rounded once: the same bytes for
/// any number of threads. On a GPU they are made in double in another order, which depends on the shapes alone. What a
/// scheme does from there (KERPLE's parameters) is in its header. Range, Throws: as for bias.
void bias_backward(TensorView d_parameters, ConstTensorView d_out, const QueryKey<Positions>& positions,
                   const Bias& form, const Run& run = {});

}  // namespace posenc
