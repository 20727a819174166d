#include <fmt/format.h>
#include <mpi.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>

#include "posenc/backend.h"
#include "posenc/distributed.h"
#include "posenc/error.h"
#include "posenc/option_set.h"

namespace posenc {
namespace {

constexpr std::string_view kVerb = "ring_attention";
// Attention of a block is cut into so many pieces of queries: between them MPI gets a chance to go on with its messages.
constexpr std::int64_t kPieces = 8;

[[noreturn]] void refuse_ring(const std::string& what) { raise(fmt::format("{}: {}", kVerb, what)); }

void check_mpi(int status) {
  if (status != MPI_SUCCESS) refuse_ring(fmt::format("MPI failed with {}", status));
}

struct Ring {
  MPI_Comm communicator = MPI_COMM_NULL;
  int rank = 0, size = 1;
  int next() const { return (rank + 1) % size; }
  int previous() const { return (rank + size - 1) % size; }
};

Ring ring_of(Communicator ranks) {
  Ring ring;
  ring.communicator = MPI_Comm_f2c(ranks.handle);
  check_mpi(MPI_Comm_rank(ring.communicator, &ring.rank));
  check_mpi(MPI_Comm_size(ring.communicator, &ring.size));
  return ring;
}

constexpr OptionSet kTaken(&AttentionOptions::position, &AttentionOptions::causal, &AttentionOptions::scale,
                           &AttentionOptions::softcap, &AttentionOptions::logsumexp);

void check_options(const AttentionOptions& options) {
  const auto* const nothing = std::get_if<Nothing>(&options.position);
  if (nothing != nullptr && nothing->temperature) refuse_ring("takes no temperature");
  refuse_others(kVerb, OptionSet(options), kTaken, "the ring");
}

void check_view(std::string_view what, const ConstTensorView& x) {
  if (x.shape.rank != 4) refuse_ring(fmt::format("{} must have 4 axes but has {}", what, x.shape.rank));
  if (x.type != DataType::kF32 && x.type != DataType::kF64) refuse_ring(fmt::format("{} must be f32 or f64", what));
  if (x.shape[2] % 2 != 0)
    refuse_ring(fmt::format("{} must have two chunks of rows but has {} rows", what, x.shape[2]));
}

// Rows from `first` on of [batch, heads, rows, features].
template <class View> View rows_of(View x, std::int64_t first, std::int64_t count) {
  using Byte =
      std::conditional_t<std::is_const_v<std::remove_pointer_t<decltype(x.data)>>, const std::byte, std::byte>;
  x.data = static_cast<Byte*>(x.data) + first * x.strides[2] * size_of(x.type);
  x.shape[2] = count;
  return x;
}

// A dense copy that can be sent.
template <class T> void copy_dense(T* to, const ConstTensorView& from) {
  for (std::int64_t b = 0; b < from.shape[0]; ++b) {
    for (std::int64_t h = 0; h < from.shape[1]; ++h) {
      for (std::int64_t s = 0; s < from.shape[2]; ++s) {
        const T* row =
            static_cast<const T*>(from.data) + b * from.strides[0] + h * from.strides[1] + s * from.strides[2];
        for (std::int64_t d = 0; d < from.shape[3]; ++d) *to++ = row[d * from.strides[3]];
      }
    }
  }
}
template <class T> void write_dense(const TensorView& to, const T* from, bool adds) {
  for (std::int64_t b = 0; b < to.shape[0]; ++b) {
    for (std::int64_t h = 0; h < to.shape[1]; ++h) {
      for (std::int64_t s = 0; s < to.shape[2]; ++s) {
        T* row = static_cast<T*>(to.data) + b * to.strides[0] + h * to.strides[1] + s * to.strides[2];
        for (std::int64_t d = 0; d < to.shape[3]; ++d) {
          T& element = row[d * to.strides[3]];
          element = adds ? element + *from : *from;
          ++from;
        }
      }
    }
  }
}

// Which rows of the rank's own queries meet which rows of a block of keys. Of a causal mask, one block is the rank's own
// (the mask is by rows there, because both chunks are in order), and every other one is seen whole by those who see it.
struct Meeting {
  std::int64_t first_query = 0, queries = 0, first_key = 0, keys = 0;
  bool causal = false;
};
Meeting meeting_of(int own, int other, std::int64_t queries, std::int64_t keys, bool causal) {
  if (!causal) return {0, queries, 0, keys, false};
  if (own == other) return {0, queries, 0, keys, true};
  if (other < own) return {0, queries, 0, keys / 2, false};     // both chunks of queries see the early chunk of keys
  return {queries / 2, queries - queries / 2, 0, keys, false};  // the late chunk of queries sees both
}

// Keys and values, or their gradients, on their way round. While one pair is computed with, the next one arrives.
template <class T> class Travellers {
 public:
  Travellers(const Ring& ring, std::int64_t count, int tag)
      : ring_(ring), tag_(tag), here_(static_cast<std::size_t>(count)), coming_(static_cast<std::size_t>(count)) {}
  Travellers(const Travellers&) = delete;
  Travellers& operator=(const Travellers&) = delete;

  T* data() { return here_.data(); }
  std::size_t size() const { return here_.size(); }

  void start() {
    const int bytes = static_cast<int>(std::min<std::size_t>(here_.size() * sizeof(T), kMost));
    if (here_.size() * sizeof(T) > kMost) refuse_ring("a block of keys and values must be below 2 GiB");
    check_mpi(MPI_Irecv(coming_.data(), bytes, MPI_BYTE, ring_.previous(), tag_, ring_.communicator, &requests_[0]));
    check_mpi(MPI_Isend(here_.data(), bytes, MPI_BYTE, ring_.next(), tag_, ring_.communicator, &requests_[1]));
  }
  void poke() {
    int is_done = 0;
    check_mpi(MPI_Testall(2, requests_, &is_done, MPI_STATUSES_IGNORE));
  }
  void finish() {
    check_mpi(MPI_Waitall(2, requests_, MPI_STATUSES_IGNORE));
    here_.swap(coming_);
  }

 private:
  static constexpr std::size_t kMost = std::numeric_limits<int>::max();
  const Ring& ring_;
  int tag_;
  std::vector<T> here_, coming_;
  MPI_Request requests_[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
};

struct Extent {
  std::int64_t batch, heads, rows, features;
};

// log(e^a + e^b), and what a's and b's shares are of it. −inf is the empty sum.
template <class T> T merge_logs(T a, T b, T& share_a, T& share_b) {
  const T larger = std::max(a, b);
  if (larger == -std::numeric_limits<T>::infinity()) {
    share_a = share_b = 0;
    return larger;
  }
  const T ea = std::exp(a - larger), eb = std::exp(b - larger), sum = ea + eb;
  share_a = ea / sum;
  share_b = eb / sum;
  return larger + std::log(sum);
}

template <class T> void ring_forward(const TensorView& out, const ConstTensorView& q, const ConstTensorView& k,
                                     const ConstTensorView& v, const AttentionOptions& options, const Ring& ring,
                                     const Run& run) {
  const Extent e = {q.shape[0], q.shape[1], q.shape[2], v.shape[3]};
  const std::int64_t key_rows = k.shape[2], keys = count_of(k.shape), values = count_of(v.shape);
  const std::int64_t length = e.rows * ring.size;
  const std::vector<std::int64_t> own_positions = zigzag_positions(length, ring.rank, ring.size);
  std::vector<T> sum(static_cast<std::size_t>(e.batch * e.heads * e.rows * e.features), T{0});
  std::vector<T> logs(static_cast<std::size_t>(e.batch * e.heads * e.rows), -std::numeric_limits<T>::infinity());
  // of one piece of the queries
  const std::int64_t most_rows = (e.rows + kPieces - 1) / kPieces;
  std::vector<T> part(static_cast<std::size_t>(e.batch * e.heads * most_rows * e.features));
  std::vector<T> part_logs(static_cast<std::size_t>(e.batch * e.heads * most_rows));
  Travellers<T> travellers(ring, keys + values, 1);
  copy_dense(travellers.data(), k);
  copy_dense(travellers.data() + keys, v);

  for (int step = 0; step < ring.size; ++step) {
    const int owner = (ring.rank - step + ring.size) % ring.size;
    const bool is_last = step + 1 == ring.size;
    if (!is_last) travellers.start();
    const Meeting meeting = meeting_of(ring.rank, owner, e.rows, key_rows, options.causal);
    const std::vector<std::int64_t> positions = zigzag_positions(length, owner, ring.size);
    const ConstTensorView block_k = view(travellers.data(), k.shape);
    const ConstTensorView block_v = view(travellers.data() + keys, v.shape);
    // pieces of the queries; with a mask by rows, each piece sees the keys up to its own end
    const std::int64_t pieces = std::min<std::int64_t>(kPieces, meeting.queries);
    for (std::int64_t piece = 0; piece < pieces; ++piece) {
      const std::int64_t from = meeting.queries * piece / pieces, to = meeting.queries * (piece + 1) / pieces;
      const std::int64_t first = meeting.first_query + from, count = to - from;
      const std::int64_t seen = meeting.causal ? first + count : meeting.keys;
      AttentionOptions own = options;
      own.causal = meeting.causal;
      own.query_positions = Positions{
          .ids = std::span(own_positions).subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(count))};
      own.key_positions = Positions{.ids = std::span(positions).first(static_cast<std::size_t>(seen))};
      const Extents shape = {e.batch, e.heads, count, e.features};
      own.logsumexp = view(part_logs.data(), {e.batch, e.heads, count});
      attention(view(part.data(), shape), rows_of(q, first, count), rows_of(block_k, 0, seen),
                rows_of(block_v, 0, seen), own, run);
      for (std::int64_t head = 0; head < e.batch * e.heads; ++head) {
        for (std::int64_t row = 0; row < count; ++row) {
          T& log = logs[static_cast<std::size_t>(head * e.rows + first + row)];
          T keep = 0, take = 0;
          log = merge_logs(log, part_logs[static_cast<std::size_t>(head * count + row)], keep, take);
          T* const to_row = sum.data() + (head * e.rows + first + row) * e.features;
          const T* const from_row = part.data() + (head * count + row) * e.features;
          for (std::int64_t d = 0; d < e.features; ++d) to_row[d] = to_row[d] * keep + from_row[d] * take;
        }
      }
      if (!is_last) travellers.poke();
    }
    if (!is_last) travellers.finish();
  }
  write_dense(out, sum.data(), false);
  if (options.logsumexp.data != nullptr) {
    TensorView logsumexp = options.logsumexp;
    logsumexp.shape.push_back(1);
    logsumexp.strides.push_back(1);
    write_dense(logsumexp, logs.data(), false);
  }
}

// Sums over ranks in their order, so that all have the same bits.
void sum_parameters(std::vector<double>& values, const Ring& ring) {
  std::vector<double> all(values.size() * static_cast<std::size_t>(ring.size));
  const int count = static_cast<int>(values.size());
  check_mpi(MPI_Allgather(values.data(), count, MPI_DOUBLE, all.data(), count, MPI_DOUBLE, ring.communicator));
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = 0;
    for (std::size_t rank = 0; rank < static_cast<std::size_t>(ring.size); ++rank)
      values[i] += all[rank * values.size() + i];
  }
}

template <class T> void ring_backward(const AttentionGradients& gradients, const ConstTensorView& d_out,
                                      const AttentionInputs& inputs, const AttentionOptions& options,
                                      const Ring& ring, const Run& run) {
  const ConstTensorView &q = inputs.q, &k = inputs.k, &v = inputs.v;
  const std::int64_t rows = q.shape[2], keys = count_of(k.shape), values = count_of(v.shape);
  const std::int64_t length = rows * ring.size;
  const std::vector<std::int64_t> own_positions = zigzag_positions(length, ring.rank, ring.size);
  std::vector<T> d_q(static_cast<std::size_t>(count_of(q.shape)), T{0}), part_q(d_q.size());
  std::vector<T> part(static_cast<std::size_t>(keys + values));
  std::vector<double> d_parameters;
  if (gradients.parameters.data != nullptr) {
    d_parameters.assign(static_cast<std::size_t>(count_of(gradients.parameters.shape)), 0.0);
  }
  Travellers<T> travellers(ring, keys + values, 1), sums(ring, keys + values, 2);
  copy_dense(travellers.data(), k);
  copy_dense(travellers.data() + keys, v);
  std::fill_n(sums.data(), sums.size(), T{0});

  for (int step = 0; step < ring.size; ++step) {
    const int owner = (ring.rank - step + ring.size) % ring.size;
    const bool is_last = step + 1 == ring.size;
    if (!is_last) travellers.start();
    const Meeting meeting = meeting_of(ring.rank, owner, rows, k.shape[2], options.causal);
    const std::vector<std::int64_t> positions = zigzag_positions(length, owner, ring.size);
    AttentionOptions own = options;
    own.logsumexp = {};
    own.causal = meeting.causal;
    own.query_positions = Positions{.ids = std::span(own_positions)
                                               .subspan(static_cast<std::size_t>(meeting.first_query),
                                                        static_cast<std::size_t>(meeting.queries))};
    own.key_positions = Positions{.ids = std::span(positions).first(static_cast<std::size_t>(meeting.keys))};
    AttentionInputs block;
    block.q = rows_of(q, meeting.first_query, meeting.queries);
    block.k = rows_of(ConstTensorView(view(travellers.data(), k.shape)), 0, meeting.keys);
    block.v = rows_of(ConstTensorView(view(travellers.data() + keys, v.shape)), 0, meeting.keys);
    // of the whole sequence: with them the weights of a block are those that it has among all keys
    block.out = rows_of(inputs.out, meeting.first_query, meeting.queries);
    block.logsumexp = inputs.logsumexp;
    block.logsumexp.data = static_cast<const std::byte*>(inputs.logsumexp.data) +
                           meeting.first_query * inputs.logsumexp.strides[2] * size_of(inputs.logsumexp.type);
    block.logsumexp.shape[2] = meeting.queries;
    std::fill(part.begin(), part.end(), T{0});
    AttentionGradients to;
    to.q = view(part_q.data(), block.q.shape);
    to.k = rows_of(view(part.data(), k.shape), 0, meeting.keys);
    to.v = rows_of(view(part.data() + keys, v.shape), 0, meeting.keys);
    if (!d_parameters.empty()) to.parameters = view(d_parameters.data(), gradients.parameters.shape);
    attention_backward(to, rows_of(d_out, meeting.first_query, meeting.queries), block, own, run);
    write_dense(rows_of(view(d_q.data(), q.shape), meeting.first_query, meeting.queries), part_q.data(), true);
    // what the ranks before this one found for these keys has come with the last round
    if (step > 0) sums.finish();
    for (std::size_t i = 0; i < part.size(); ++i) sums.data()[i] += part[i];
    sums.start();
    if (!is_last) travellers.finish();
  }
  sums.finish();  // the rank's own keys are home again
  const auto write = [](const TensorView& to, const T* from) {
    if (to.data != nullptr) write_dense(to, from, false);
  };
  write(gradients.q, d_q.data());
  write(gradients.k, sums.data());
  write(gradients.v, sums.data() + keys);
  if (!d_parameters.empty()) {
    sum_parameters(d_parameters, ring);
    if (gradients.parameters.type == DataType::kF64) {
      auto* const to = static_cast<double*>(gradients.parameters.data);
      for (std::size_t i = 0; i < d_parameters.size(); ++i) to[i] += d_parameters[i];
    } else {
      auto* const to = static_cast<float*>(gradients.parameters.data);
      for (std::size_t i = 0; i < d_parameters.size(); ++i)
        to[i] = static_cast<float>(static_cast<double>(to[i]) + d_parameters[i]);
    }
  }
}

void check_gradient(std::string_view what, const TensorView& gradient, const ConstTensorView& like) {
  if (gradient.data == nullptr) return;
  if (gradient.shape != like.shape || gradient.type != like.type) {
    refuse_ring(fmt::format("the gradient of {} must have its shape and type", what));
  }
}

}  // namespace

std::vector<std::int64_t> zigzag_positions(std::int64_t length, int rank, int ranks) {
  if (ranks < 1 || rank < 0 || rank >= ranks) refuse_ring(fmt::format("there is no rank {} of {}", rank, ranks));
  if (length < 0 || length % (2 * ranks) != 0) {
    refuse_ring(fmt::format("the length must be a multiple of 2·ranks, {}, but is {}", 2 * ranks, length));
  }
  const std::int64_t chunk = length / (2 * ranks);
  std::vector<std::int64_t> positions(static_cast<std::size_t>(2 * chunk));
  std::iota(positions.begin(), positions.begin() + chunk, rank * chunk);
  std::iota(positions.begin() + chunk, positions.end(), (2 * ranks - 1 - rank) * chunk);
  return positions;
}

void ring_attention(TensorView out, ConstTensorView q, ConstTensorView k, ConstTensorView v,
                    const AttentionOptions& options, Communicator ranks, const Run& run) {
  const Ring ring = ring_of(ranks);
  check_options(options);
  for (const auto& [what, x] :
       {std::pair<std::string_view, ConstTensorView>{"q", q}, {"k", k}, {"v", v}, {"out", out}}) {
    check_view(what, x);
    if (x.type != q.type) refuse_ring(fmt::format("{} must have q's type", what));
    if (x.shape[2] != q.shape[2])
      refuse_ring(fmt::format("{} must have as many rows as q, {}, but has {}", what, q.shape[2], x.shape[2]));
  }
  if (q.type == DataType::kF32) {
    ring_forward<float>(out, q, k, v, options, ring, run);
  } else {
    ring_forward<double>(out, q, k, v, options, ring, run);
  }
}

void ring_attention_backward(const AttentionGradients& gradients, ConstTensorView d_out,
                             const AttentionInputs& inputs, const AttentionOptions& options, Communicator ranks,
                             const Run& run) {
  const Ring ring = ring_of(ranks);
  check_options(options);
  for (const auto& [what, x] : {std::pair<std::string_view, ConstTensorView>{"q", inputs.q},
                                {"k", inputs.k},
                                {"v", inputs.v},
                                {"d_out", d_out},
                                {"out", inputs.out}}) {
    check_view(what, x);
    if (x.type != inputs.q.type) refuse_ring(fmt::format("{} must have q's type", what));
    if (x.shape[2] != inputs.q.shape[2]) refuse_ring(fmt::format("{} must have as many rows as q", what));
  }
  if (inputs.logsumexp.data == nullptr) refuse_ring("backward needs the logsumexp that ring_attention gave");
  // Gradients of a block need weights that are relative to all blocks, by the logsumexp of the whole sequence. The cpu
  // backend has them in float32; where the reference's definition is used, weights are made anew for the block.
  const Bias* const bias = std::get_if<Bias>(&options.position);
  if (inputs.q.type != DataType::kF32 || backend() != "cpu" || options.softcap > 0 ||
      (bias != nullptr && needs_content(*bias))) {
    refuse_ring("backward needs f32, the cpu backend, and no softcap and no vectors by distance");
  }
  check_gradient("q", gradients.q, inputs.q);
  check_gradient("k", gradients.k, inputs.k);
  check_gradient("v", gradients.v, inputs.v);
  if (gradients.query_vectors.data != nullptr || gradients.key_vectors.data != nullptr ||
      gradients.sinks.data != nullptr) {
    refuse_ring("has gradients of q, k, v and a bias's parameters only");
  }
  ring_backward<float>(gradients, d_out, inputs, options, ring, run);
}

}  // namespace posenc
