#include "posenc/apply.h"

#include "c_api/arguments.h"
#include "posenc/cache.h"

using namespace posenc;         // NOLINT(google-build-using-namespace)
using namespace posenc::c_api;  // NOLINT(google-build-using-namespace)

namespace {

// One tensor, or queries and keys in one pass.
template <class Call> void with_query_key(posenc_query_key out, posenc_query_key x, const char* verb, Call&& call) {
  const TensorView q = needed_view(x.q, verb, "x"), out_q = needed_view(out.q, verb, "out");
  if ((x.k == nullptr) != (out.k == nullptr)) {
    refuse(fmt::format("{}: keys need both an input and an output", verb));
  }
  if (x.k == nullptr) return call(out_q, ConstTensorView(q));
  const TensorView k = view_of(x.k, verb, "keys"), out_k = view_of(out.k, verb, "out (keys)");
  call(QueryKey<TensorView>{out_q, out_k}, QueryKey<ConstTensorView>{q, k});
}

void copy_to(const posenc_tensor* out, const std::vector<std::int64_t>& values, const char* verb) {
  const TensorView view = host_view(out, verb, "out");
  if (view.type != DataType::kI64 || view.strides != dense_strides(view.shape)) {
    refuse(fmt::format("{}: out must be dense i64", verb));
  }
  if (count_of(view.shape) != std::ssize(values)) {
    refuse(fmt::format("{}: out has {} elements, but there are {} positions", verb, count_of(view.shape),
                       values.size()));
  }
  if (!values.empty()) std::memcpy(view.data, values.data(), values.size() * sizeof(std::int64_t));
}

std::span<const std::int64_t> on_host(const Integers& integers, const char* verb) {
  if (integers.device() != Device::kHost) refuse(POSENC_DEVICE, fmt::format("{}: must be in host memory", verb));
  return integers.values();
}

}  // namespace

extern "C" {

int posenc_tabulate(const posenc_form* form, const posenc_tensor* out, const posenc_tensor* sines,
                    const posenc_positions* positions, const posenc_run* run) {
  return guarded([&] {
    const char* const verb = "tabulate";
    const HeldPositions where(positions, verb);
    const TensorView first = needed_view(out, verb, "out");
    if (std::holds_alternative<Rotation>(form_of(form, verb))) {
      return tabulate(first, needed_view(sines, verb, "sines"), where.value, form_as<Rotation>(form, verb),
                      run_of(run));
    }
    if (sines != nullptr) refuse("tabulate: sines are for rotations");
    tabulate(first, where.value, form_as<Addition>(form, verb), run_of(run));
  });
}

int posenc_add(const posenc_form* form, const posenc_tensor* out, const posenc_tensor* x,
               const posenc_positions* positions, const posenc_run* run) {
  return guarded([&] {
    const HeldPositions where(positions, "add");
    add(needed_view(out, "add", "out"), needed_view(x, "add", "x"), where.value, form_as<Addition>(form, "add"),
        run_of(run));
  });
}

int posenc_add_backward(const posenc_tensor* d_table, const posenc_tensor* d_out, const posenc_positions* positions,
                        int64_t offset, const posenc_run* run) {
  return guarded([&] {
    const char* const verb = "add_backward";
    const HeldPositions where(positions, verb);
    add_backward(needed_view(d_table, verb, "d_table"), needed_view(d_out, verb, "d_out"), where.value, offset,
                 run_of(run));
  });
}

int posenc_rotate(const posenc_form* form, posenc_query_key out, posenc_query_key x,
                  const posenc_positions* positions, const posenc_run* run) {
  return guarded([&] {
    const HeldPositions where(positions, "rotate");
    const Rotation& rotation = form_as<Rotation>(form, "rotate");
    with_query_key(out, x, "rotate",
                   [&](const auto& to, const auto& from) { rotate(to, from, where.value, rotation, run_of(run)); });
  });
}

int posenc_rotate_backward(const posenc_form* form, posenc_query_key d_out, const posenc_positions* positions,
                           const posenc_run* run) {
  return guarded([&] {
    const char* const verb = "rotate_backward";
    const HeldPositions where(positions, verb);
    const Rotation& rotation = form_as<Rotation>(form, verb);
    rotate_backward(needed_view(d_out.q, verb, "d_out"), where.value, rotation, run_of(run));
    if (d_out.k == nullptr) return;
    rotate_backward(view_of(d_out.k, verb, "d_out (keys)"), where.value, for_keys(rotation), run_of(run));
  });
}

int posenc_rerotate(const posenc_form* from, const posenc_form* to, const posenc_tensor* x,
                    const posenc_positions* positions, const posenc_run* run) {
  return guarded([&] {
    const char* const verb = "rerotate";
    const HeldPositions where(positions, verb);
    rerotate(needed_view(x, verb, "x"), where.value, form_as<Rotation>(from, verb), form_as<Rotation>(to, verb),
             run_of(run));
  });
}

int posenc_shift(const posenc_form* form, const posenc_tensor* keys, int64_t by, const posenc_run* run) {
  return guarded(
      [&] { shift(needed_view(keys, "shift", "keys"), by, form_as<Rotation>(form, "shift"), run_of(run)); });
}

int posenc_bias(const posenc_form* form, const posenc_tensor* out, const posenc_positions* queries,
                const posenc_positions* keys, const posenc_run* run) {
  return guarded([&] {
    const HeldPositions of_queries(queries, "bias"), of_keys(keys, "bias");
    bias(needed_view(out, "bias", "out"), of_queries.value, of_keys.value, form_as<Bias>(form, "bias"), run_of(run));
  });
}

int posenc_bias_backward(const posenc_form* form, const posenc_tensor* d_parameters, const posenc_tensor* d_out,
                         const posenc_positions* queries, const posenc_positions* keys, const posenc_run* run) {
  return guarded([&] {
    const char* const verb = "bias_backward";
    const HeldPositions of_queries(queries, verb), of_keys(keys, verb);
    bias_backward(needed_view(d_parameters, verb, "d_parameters"), needed_view(d_out, verb, "d_out"),
                  {of_queries.value, of_keys.value}, form_as<Bias>(form, verb), run_of(run));
  });
}

int posenc_packed_positions(const posenc_tensor* out, const posenc_tensor* lengths) {
  return guarded([&] {
    const char* const verb = "packed_positions";
    require(lengths, verb, "lengths");
    copy_to(out, packed_positions(on_host(Integers(lengths, verb, "lengths"), verb)), verb);
  });
}

int posenc_grid_positions(const posenc_tensor* out, const posenc_tensor* extents) {
  return guarded([&] {
    const char* const verb = "grid_positions";
    require(extents, verb, "extents");
    copy_to(out, grid_positions(on_host(Integers(extents, verb, "extents"), verb)), verb);
  });
}

int posenc_positions_from_mask(const posenc_tensor* out, const posenc_tensor* mask, const char* rule,
                               int64_t padding) {
  return guarded([&] {
    const char* const verb = "positions_from_mask";
    require(mask, verb, "mask");
    const Integers tokens(mask, verb, "mask");
    const std::string name = rule == nullptr ? "cumulative" : rule;
    if (name != "cumulative" && name != "roberta") {
      refuse(fmt::format("{}: no rule '{}'; choose from: cumulative, roberta", verb, name));
    }
    const MaskOptions options{.batch = mask->ndim == 2 ? mask->shape[0] : 1,
                              .rule = name == "roberta" ? MaskRule::kRoberta : MaskRule::kCumulative,
                              .padding = padding};
    if (mask->ndim < 1 || mask->ndim > 2) refuse(fmt::format("{}: mask must be [batch, sequence]", verb));
    copy_to(out, positions_from_mask(on_host(tokens, verb), options), verb);
  });
}

}  // extern "C"
