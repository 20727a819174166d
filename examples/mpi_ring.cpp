// Ring attention over any MPI: a sequence that no process holds whole. Each process holds some of the tokens. Keys and values
// travel around the ring while it computes with those that arrived before, and `merge` makes one result of the parts. The
// gradients take the same way. At the end, every process compares its rows with attention over the whole sequence.
//   mpicxx -std=c++20 -O2 mpi_ring.cpp $(pkg-config --cflags --libs posenc) -o mpi_ring && mpirun -n 3 ./mpi_ring
#include <mpi.h>
#include <posenc/posenc.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <span>
#include <vector>

namespace {

using namespace posenc;
constexpr std::int64_t kHeads = 4, kKeyHeads = 2, kFeatures = 32,
                       kChunk = 20;  // tokens of a chunk; a process has two

struct Ring {
  int rank = 0, size = 1;
  int next() const { return (rank + 1) % size; }
  int previous() const { return (rank + size - 1) % size; }
  int owner(int step) const { return (rank + size - step) % size; }  // of the block that is here at that step
};

// Dense tensors of some tokens: [heads, tokens, features], [heads, tokens].
struct Tokens {
  std::vector<float> q, kv, out, logsumexp, d_out, d_q, d_kv;  // kv: all of k, then all of v, to be one message
};
template <class Floats> auto queries(Floats& x) {
  return view(x.data(), {kHeads, std::ssize(x) / (kHeads * kFeatures), kFeatures});
}
template <class Floats> auto keys(Floats& x) {
  return view(x.data(), {kKeyHeads, std::ssize(x) / (2 * kKeyHeads * kFeatures), kFeatures});
}
template <class Floats> auto values(Floats& x) {
  return view(x.data() + x.size() / 2, {kKeyHeads, std::ssize(x) / (2 * kKeyHeads * kFeatures), kFeatures});
}
template <class Floats> auto sums(Floats& x) { return view(x.data(), {kHeads, std::ssize(x) / kHeads}); }

// A process has an early chunk and a late one of 2 · size chunks, so that a causal mask gives all of them the same work.
std::vector<std::int64_t> positions_of(int rank, int size) {
  std::vector<std::int64_t> ids;
  for (const std::int64_t chunk : {rank, 2 * size - 1 - rank}) {
    for (std::int64_t i = 0; i < kChunk; ++i) ids.push_back(chunk * kChunk + i);
  }
  return ids;
}

// One call of attention: which of this process's queries attend to which keys of a block. In its own block, the mask is by
// rows, because both chunks are in order. All queries see the early chunk of a process before it; only the late ones
// see the block of a process after it, and they see all of it.
struct Step {
  std::int64_t first_query = 0, query_count = 2 * kChunk, key_count = 2 * kChunk;
  std::vector<std::int64_t> query_ids, key_ids;
  AttentionOptions options = {};

  Step(const Ring& ring, int owner, const Form& position)
      : query_ids(positions_of(ring.rank, ring.size)), key_ids(positions_of(owner, ring.size)) {
    if (owner < ring.rank) key_count = kChunk;
    if (owner > ring.rank) first_query = query_count = kChunk;
    options.position = position;
    options.causal = owner == ring.rank;
    options.query_positions = Positions{.ids = std::span(query_ids).subspan(static_cast<std::size_t>(first_query))};
    options.key_positions = Positions{.ids = std::span(key_ids).first(static_cast<std::size_t>(key_count))};
  }
  Step(const Step&) = delete;
  Step& operator=(const Step&) = delete;
  template <class View> View of_queries(const View& x) const { return slice(x, 1, first_query, query_count); }
  template <class View> View of_keys(const View& x) const { return slice(x, 1, 0, key_count); }
};

void ring_attention(const Ring& ring, const Form& position, Tokens& own) {
  std::vector<float> block = own.kv, coming(block.size()), part(own.out.size()), part_sums(own.logsumexp.size());
  const auto count = static_cast<int>(block.size());
  for (int i = 0; i < ring.size; ++i) {
    MPI_Request requests[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
    if (i + 1 < ring.size) {
      MPI_Irecv(coming.data(), count, MPI_FLOAT, ring.previous(), 0, MPI_COMM_WORLD, &requests[0]);
      MPI_Isend(block.data(), count, MPI_FLOAT, ring.next(), 0, MPI_COMM_WORLD, &requests[1]);
    }
    Step step(ring, ring.owner(i), position);
    const TensorView out = step.of_queries(queries(i == 0 ? own.out : part));
    step.options.logsumexp = step.of_queries(sums(i == 0 ? own.logsumexp : part_sums));
    attention(out, step.of_queries(queries(own.q)), step.of_keys(keys(block)), step.of_keys(values(block)),
              step.options);
    if (i > 0) {  // the first block is the process's own, in which every query sees a key: written to out directly
      merge(step.of_queries(queries(own.out)), step.of_queries(sums(own.logsumexp)), out, step.options.logsumexp);
    }
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    block.swap(coming);
  }
}

// The weights of a block's keys among all keys follow from the out and logsumexp of the whole sequence. Keys and values travel
// with their gradients, to which each process adds, and are home again after as many steps as there are processes.
void ring_attention_backward(const Ring& ring, const Form& position, Tokens& own) {
  std::vector<float> block = own.kv, d_block(block.size()), part(own.q.size()), d_part(block.size());
  const auto add = [](std::vector<float>& to, const std::vector<float>& from) {
    for (std::size_t i = 0; i < to.size(); ++i) to[i] += from[i];
  };
  own.d_q.assign(own.q.size(), 0.0f);
  for (int i = 0; i < ring.size; ++i) {
    const Step step(ring, ring.owner(i), position);
    std::fill(part.begin(), part.end(), 0.0f);  // rows that are not part of this step
    std::fill(d_part.begin(), d_part.end(), 0.0f);
    attention_backward(
        {.q = step.of_queries(queries(part)), .k = step.of_keys(keys(d_part)), .v = step.of_keys(values(d_part))},
        step.of_queries(queries(own.d_out)),
        {step.of_queries(queries(own.q)), step.of_keys(keys(block)), step.of_keys(values(block)),
         step.of_queries(queries(own.out)), step.of_queries(sums(own.logsumexp))},
        step.options);
    add(own.d_q, part);
    add(d_block, d_part);
    for (std::vector<float>* const travels : {&block, &d_block}) {
      MPI_Sendrecv_replace(travels->data(), static_cast<int>(travels->size()), MPI_FLOAT, ring.next(), 0,
                           ring.previous(), 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
  }
  own.d_kv = d_block;
}

std::vector<float> numbers(std::int64_t heads, std::int64_t tokens, double step) {
  std::vector<float> x;
  for (std::int64_t i = 0; i < heads * tokens * kFeatures; ++i) {
    x.push_back(static_cast<float>(std::sin(step * static_cast<double>(i))));
  }
  return x;
}

// The rows of a process, of [heads, tokens, features of a row].
std::vector<float> rows_of(const Ring& ring, const std::vector<float>& whole, std::int64_t heads,
                           std::int64_t features = kFeatures) {
  std::vector<float> own;
  const std::int64_t tokens = std::ssize(whole) / (heads * features);
  for (std::int64_t h = 0; h < heads; ++h) {
    for (const std::int64_t id : positions_of(ring.rank, ring.size)) {
      const auto row = whole.begin() + (h * tokens + id) * features;
      own.insert(own.end(), row, row + features);
    }
  }
  return own;
}

float largest_difference(const std::vector<float>& a, const std::vector<float>& b) {
  float largest = a.size() == b.size() ? 0.0f : HUGE_VALF;
  for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    const float difference = std::fabs(a[i] - b[i]);
    largest = std::isnan(difference) ? HUGE_VALF : std::max(largest, difference);
  }
  return largest;
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  Ring ring;
  MPI_Comm_rank(MPI_COMM_WORLD, &ring.rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ring.size);
  const std::int64_t length = 2 * kChunk * ring.size;
  const Form rope = prepare(Rope{.dims = kFeatures});

  // What one process would do.
  Tokens whole;
  whole.q = whole.out = whole.d_q = numbers(kHeads, length, 0.7);
  whole.kv = whole.d_kv = numbers(2 * kKeyHeads, length, 0.37);
  whole.d_out = numbers(kHeads, length, 0.13);
  whole.logsumexp.resize(static_cast<std::size_t>(kHeads * length));
  attention(queries(whole.out), queries(whole.q), keys(whole.kv), values(whole.kv),
            {.position = rope, .causal = true, .logsumexp = sums(whole.logsumexp)});
  attention_backward({.q = queries(whole.d_q), .k = keys(whole.d_kv), .v = values(whole.d_kv)}, queries(whole.d_out),
                     {queries(whole.q), keys(whole.kv), values(whole.kv), queries(whole.out), sums(whole.logsumexp)},
                     {.position = rope, .causal = true});

  Tokens own;
  own.q = own.out = rows_of(ring, whole.q, kHeads);
  own.kv = rows_of(ring, whole.kv, 2 * kKeyHeads);
  own.d_out = rows_of(ring, whole.d_out, kHeads);
  own.logsumexp.resize(static_cast<std::size_t>(kHeads * 2 * kChunk));
  ring_attention(ring, rope, own);
  ring_attention_backward(ring, rope, own);

  float found[2] = {std::max(largest_difference(own.out, rows_of(ring, whole.out, kHeads)),
                             largest_difference(own.logsumexp, rows_of(ring, whole.logsumexp, kHeads, 1))),
                    std::max(largest_difference(own.d_q, rows_of(ring, whole.d_q, kHeads)),
                             largest_difference(own.d_kv, rows_of(ring, whole.d_kv, 2 * kKeyHeads)))};
  float largest[2] = {};
  MPI_Allreduce(found, largest, 2, MPI_FLOAT, MPI_MAX, MPI_COMM_WORLD);
  const bool is_right = largest[0] < 1e-5f && largest[1] < 1e-5f;
  if (ring.rank == 0) {
    std::printf("%d processes, %d tokens: largest difference %.1e, of gradients %.1e: %s\n", ring.size,
                static_cast<int>(length), static_cast<double>(largest[0]), static_cast<double>(largest[1]),
                is_right ? "as on one process" : "WRONG");
  }
  MPI_Finalize();
  return is_right ? 0 : 1;
}
