#pragma once

#include <cstdint>
#include <vector>

#include "posenc/attention.h"
#include "posenc/tensor.h"

namespace posenc {

// Attention over a sequence that is distributed over several processes, with MPI. It is a separate library, posenc::mpi;
// this header does not need mpi.h.

/// A communicator as an integer handle, which every MPI provides: MPI_Comm_c2f(MPI_COMM_WORLD).
struct Communicator {
  int handle = 0;
};

/// The global positions of the tokens that a rank holds, in the order of its rows: chunk `rank` and chunk
/// 2·ranks − 1 − rank of 2·ranks equal chunks, so that with a causal mask all ranks have the same amount of work.
/// Throws: Error if the length is not a multiple of 2·ranks, or if there is no such rank.
std::vector<std::int64_t> zigzag_positions(std::int64_t length, int rank, int ranks);

/// attention() over a sequence whose tokens are distributed over the ranks as in zigzag_positions: q, k, v and out are the
/// rank's own rows, [batch, heads, rows, features]. Keys and values are passed around the ring of ranks while the previous
/// ones are being processed; partial results are merged by their log-sum-exp, in the same order in every run. All ranks
/// must call it.
///   Supported options: position, causal, scale, softcap and logsumexp. Positions are those of the whole sequence.
/// Error: that of attention, once per rank. The same bits for any number of threads.
/// Memory per rank, in addition to its tensors: keys and values of two blocks, and two outputs.
/// Throws: Error for any other option, for shapes that differ between ranks, and as attention.
void ring_attention(TensorView out, ConstTensorView q, ConstTensorView k, ConstTensorView v,
                    const AttentionOptions& options, Communicator ranks, const Run& run = {});

/// The gradients of ring_attention; inputs.out and inputs.logsumexp must be its results. Gradients of the position's
/// parameters are summed over the ranks in rank order, so that all ranks get the same.
/// Range: f32, the cpu backend, no softcap and no vectors by distance. Throws: Error otherwise.
void ring_attention_backward(const AttentionGradients& gradients, ConstTensorView d_out,
                             const AttentionInputs& inputs, const AttentionOptions& options, Communicator ranks,
                             const Run& run = {});

}  // namespace posenc
