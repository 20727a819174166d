#pragma once

#include "posenc/forms.h"
#include "posenc/positions.h"
#include "posenc/tensor.h"

namespace posenc {

/// out[i, :] = the vector of position i. out is [sequence, width] or [batch, sequence, width], any strides,
/// f32, f64, f16 or bf16.
/// Error: waves are correctly rounded to f32, f16 and bf16 (0.5 ulp, one rounding from the exact value) and
///   within 0.501 ulp in f64, so the bytes are the same on every machine; rows are copied, lines are
///   rounded once from double.
/// Range: positions 0 ≤ p < 2^53; for rows, 0 ≤ p + offset < rows.
/// Throws: Error for a shape, type or position that does not fit; out is not touched then.
void tabulate(TensorView out, const Positions& positions, const Addition& form);

/// x += the vector of its position. x is [..., sequence, width], any strides; Positions.ids may hold one list
/// for all sequences or one for each. f32, f16, bf16: the vector is made (or read) in f32, added in f32 and
/// rounded to x's type; f64: in f64.
/// Range, Throws: as for tabulate.
void add(TensorView x, const Positions& positions, const Addition& form);

/// out = x + the vector of its position; out has x's shape and type and is x or does not overlap it.
void add(TensorView out, ConstTensorView x, const Positions& positions, const Addition& form);

/// The gradient of a learned table: d_table[p + offset, :] += Σ d_out[token at p, :].
/// Each row's sum is made in double in the order of the tokens, then added and rounded once, so repeated
/// positions give the same bytes for any number of threads.
/// d_table is [rows, width], d_out [..., sequence, width]; offset as in Rows.
/// Range, Throws: as for tabulate.
void add_backward(TensorView d_table, ConstTensorView d_out, const Positions& positions, std::int64_t offset = 0);

}  // namespace posenc
