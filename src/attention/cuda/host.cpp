#include "attention/cuda/host.h"

#include <algorithm>
#include <cstring>

#include "kernels/cuda/pieces.h"
#include "posenc/error.h"

namespace posenc::attend::cuda {
namespace {

using namespace kernels::cuda;

// Query heads first … first + count − 1 of a form; the values of a table are copied into it.
Form for_heads(const Form& form, std::int64_t first, std::int64_t count) {
  const auto* const bias = std::get_if<Bias>(&form);
  if (bias == nullptr || count == bias->heads) return form;
  Bias some{count, bias->source};
  if (auto* const slopes = std::get_if<Slopes>(&some.source)) {
    const std::vector<double>& all = std::get<Slopes>(bias->source).slopes;
    slopes->slopes.assign(all.begin() + first, all.begin() + first + count);
  } else if (auto* const table = std::get_if<DistanceTable>(&some.source)) {
    const ConstTensorView all = table_of(std::get<DistanceTable>(bias->source), bias->heads);
    table->weights = {};
    table->values.clear();
    for (std::int64_t row = 0; row < all.shape[0]; ++row) {
      for (std::int64_t h = first; h < first + count; ++h) {
        table->values.push_back(kernels::table_element<double>(all, row, h));
      }
    }
  } else {
    raise("attention: on cuda there is a kernel only for slopes and tables by distance of one axis");
  }
  return some;
}

// The positions of one sequence; `ids` is their storage.
std::optional<Positions> of_sequence(const std::optional<Positions>& all, std::int64_t b, std::int64_t batch,
                                     std::int64_t tokens, std::vector<std::int64_t>& ids) {
  if (!all.has_value() || (all->ids.empty() && all->ids_i32.empty())) return all;
  const std::size_t count = all->ids.empty() ? all->ids_i32.size() : all->ids.size();
  const bool has_own = static_cast<std::int64_t>(count) == all->axes * batch * tokens && batch > 1;
  ids.clear();
  for (std::int64_t axis = 0; axis < all->axes; ++axis) {
    for (std::int64_t t = 0; t < tokens; ++t) {
      const auto at = static_cast<std::size_t>(has_own ? (axis * batch + b) * tokens + t : axis * tokens + t);
      ids.push_back(all->ids.empty() ? all->ids_i32[at] : all->ids[at]);
    }
  }
  Positions own = *all;
  own.ids = ids;
  own.ids_i32 = {};
  return own;
}

template <class T> std::span<const T> of_row(std::span<const T> all, std::int64_t b, std::int64_t batch) {
  if (all.empty()) return all;
  const std::size_t size = all.size() / static_cast<std::size_t>(batch);
  return all.subspan(static_cast<std::size_t>(b) * size, size);
}

// Some heads of a tensor.
template <class Void> HeadTensor<Void> heads_from(HeadTensor<Void> x, std::int64_t first, std::int64_t count) {
  if (x.data == nullptr) return x;
  x.data = kernels::with_type(x.type, [&](auto kind) -> Void* {
    using T = std::conditional_t<std::is_const_v<Void>, const decltype(kind), decltype(kind)>;
    return static_cast<T*>(x.data) + first * x.head_stride;
  });
  x.heads = count;
  return x;
}
template <class Void> std::int64_t bytes_of(const HeadTensor<Void>& x) {
  return x.heads * x.sequence * x.features * size_of(x.type);
}
TensorView on_gpu(Address at, std::int64_t offset, DataType type, const Extents& shape) {
  return on(Device::kCuda, TensorView(reinterpret_cast<void*>(at + static_cast<Address>(offset)), type, shape));
}
std::int64_t aligned_to_line(std::int64_t bytes) { return (bytes + 255) / 256 * 256; }

}  // namespace

bool takes_from_host(const AttentionJob& job) { return job.q.type != DataType::kF64 && job.k.type == job.q.type; }

void forward_on_host(const AttentionJob& job, const AttentionCall& call, Compute compute) {
  refuse_others(call.verb, call.given, kOnGpu, "cuda");
  const std::int64_t batch = job.q.batch, group = job.q.heads / job.k.heads;
  const bool has_sums = job.logsumexp.data != nullptr;
  const std::int64_t of_head = group * bytes_of(heads_from(job.q, 0, 1)) + bytes_of(heads_from(job.k, 0, 1)) +
                               bytes_of(heads_from(job.v, 0, 1));
  const std::int64_t together =
      std::clamp<std::int64_t>(4 * kPieceBytes / std::max<std::int64_t>(of_head, 1), 1, job.k.heads);
  const std::int64_t out_bytes = aligned_to_line(together * group * bytes_of(heads_from(job.out, 0, 1)));
  Pieces pieces(static_cast<std::size_t>(together * of_head + 3 * 256),
                static_cast<std::size_t>(out_bytes + (has_sums ? together * group * job.q.sequence * 4 : 0)));
  std::vector<std::int64_t> query_ids, key_ids;
  for (std::int64_t b = 0; b < batch; ++b) {
    const KeyRange seen = job.visible_keys(b);
    for (std::int64_t h = 0; h < job.k.heads; h += together) {
      const std::int64_t keys = std::min(together, job.k.heads - h), heads = keys * group;
      const auto q = heads_from(job.q, h * group, heads), k = heads_from(job.k, h, keys),
                 v = heads_from(job.v, h, keys);
      const auto out = heads_from(job.out, h * group, heads), sums = heads_from(job.logsumexp, h * group, heads);
      Pieces::Place& place = pieces.next();
      const std::int64_t k_at = aligned_to_line(bytes_of(q)), v_at = aligned_to_line(k_at + bytes_of(k));
      gather(place.in, q, b, 0, q.sequence);
      // Keys that no query attends to must not be read.
      const auto gather_seen = [&](std::int64_t at, const HeadTensor<const void>& x) {
        const std::int64_t row = x.features * size_of(x.type);
        for (std::int64_t one = 0; one < x.heads; ++one) {
          std::byte* const to = place.in + at + one * x.sequence * row;
          const std::int64_t begin = std::min(seen.begin, seen.end);
          std::memset(to, 0, static_cast<std::size_t>(begin * row));
          gather(to + begin * row, heads_from(x, one, 1), b, begin, seen.end - begin);
          std::memset(to + seen.end * row, 0, static_cast<std::size_t>((x.sequence - seen.end) * row));
        }
      };
      gather_seen(k_at, k), gather_seen(v_at, v);
      Pieces::send(place, static_cast<std::size_t>(v_at + bytes_of(v)));

      const Form position = for_heads(*call.position, h * group, heads);
      AttentionCall own = call;
      own.set_position(position);
      own.query_positions = of_sequence(call.query_positions, b, batch, q.sequence, query_ids);
      own.key_positions = of_sequence(call.key_positions, b, batch, k.sequence, key_ids);
      own.query_lengths = of_row(call.query_lengths, b, batch);
      own.key_lengths = of_row(call.key_lengths, b, batch);
      own.key_mask = of_row(call.key_mask, b, batch);
      own.block_table = {};  // the pages have been joined
      own.logsumexp = {};
      if (has_sums) own.logsumexp = on_gpu(place.gpu_out, out_bytes, DataType::kF32, {1, heads, q.sequence});
      own.out = on_gpu(place.gpu_out, 0, out.type, {1, heads, out.sequence, out.features});
      own.inputs = {on_gpu(place.gpu_in, 0, q.type, {1, heads, q.sequence, q.features}),
                    on_gpu(place.gpu_in, k_at, k.type, {1, keys, k.sequence, k.features}),
                    on_gpu(place.gpu_in, v_at, v.type, {1, keys, v.sequence, v.features})};
      compute(own, nullptr, place.run());
      const std::int64_t bytes = has_sums ? out_bytes + bytes_of(sums) : bytes_of(out);
      Pieces::fetch(place, static_cast<std::size_t>(bytes), [out, sums, b, out_bytes](const std::byte* made) {
        scatter(out, made, b, 0, out.sequence);
        if (sums.data != nullptr) scatter(sums, made + out_bytes, b, 0, sums.sequence);
      });
    }
  }
  pieces.finish();
}

}  // namespace posenc::attend::cuda
