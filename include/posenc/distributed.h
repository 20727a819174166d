#pragma once

#include <cstdint>
#include <vector>

#include "posenc/attention.h"
#include "posenc/tensor.h"

namespace posenc {

// Attention over a sequence that no process holds whole, on MPI. Its own library, posenc::mpi; this header needs no mpi.h.

/// A communicator by its number, which every MPI has: MPI_Comm_c2f(MPI_COMM_WORLD).
struct Communicator {
  int handle = 0;
};

/// Which tokens of a sequence a rank holds: chunk `rank` and chunk 2·ranks − 1 − rank of 2·ranks equal ones, so that with
/// a causal mask all have the same work. The global positions, in the order of the rank's rows.
/// Throws: Error where the length is not a multiple of 2·ranks, or there is no such rank.
std::vector<std::int64_t> zigzag_positions(std::int64_t length, int rank, int ranks);

/// attention() of a sequence whose tokens are shared out over the ranks as zigzag_positions says: q, k, v and out are the
/// rank's own rows, [batch, heads, rows, features]. Keys and values go round from rank to rank while the last ones are
/// computed with; partial results are merged by their log-sum-exp, in the same order on every run. Every rank calls it.
///   options: position, causal, scale, softcap and logsumexp; positions are those of the whole sequence by themselves.
/// Error: that of attention, once for each rank. The same bits for any number of threads.
/// Memory of a rank, beside its tensors: keys and values of two blocks, and two outputs.
/// Throws: Error for any other option, for dynamic shapes that differ between ranks, and as attention does.
void ring_attention(TensorView out, ConstTensorView q, ConstTensorView k, ConstTensorView v,
                    const AttentionOptions& options, Communicator ranks, const Run& run = {});

/// The gradients of ring_attention; inputs.out and inputs.logsumexp must be what it gave. Those of the position's
/// parameters are summed over the ranks, in their order, so that all have the same.
/// Range: f32, the cpu backend, no softcap and no vectors by distance. Throws: Error otherwise.
void ring_attention_backward(const AttentionGradients& gradients, ConstTensorView d_out,
                             const AttentionInputs& inputs, const AttentionOptions& options, Communicator ranks,
                             const Run& run = {});

}  // namespace posenc
