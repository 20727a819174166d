#include "posenc/cache.h"

#include <algorithm>
#include <limits>

#include "c_api/arguments.h"

using namespace posenc;         // NOLINT(google-build-using-namespace)
using namespace posenc::c_api;  // NOLINT(google-build-using-namespace)

namespace {

// A caller's slots, and their storage if they are converted.
struct HeldSlots {
  Integers wide;
  Slots value;
  HeldSlots(const posenc_tensor* slots, const char* verb, const char* what) {
    require(slots, verb, what);
    const TensorView view = integers_view(*slots, verb, what);
    if (view.device != Device::kHost && slots->dtype.bits == 32 && is_dense(view)) {
      const auto* const narrow = static_cast<const std::int32_t*>(view.data);
      value = {std::span(narrow, count_of(view.shape)), view.device};
      return;
    }
    wide = Integers(slots, verb, what);
    value = {wide.values(), wide.device()};
  }
  HeldSlots(const HeldSlots&) = delete;
  HeldSlots& operator=(const HeldSlots&) = delete;
};

// Null for a form that leaves keys as they are.
const Rotation* rotation_of(const posenc_form* form, const char* verb) {
  if (form == nullptr) return nullptr;
  if (std::holds_alternative<Addition>(form->form)) {
    refuse(fmt::format("{}: an addition belongs to the embeddings; copy keys into the cache without a form", verb));
  }
  return std::get_if<Rotation>(&form->form);
}

}  // namespace

extern "C" {

int posenc_slots_of(const posenc_tensor* out, const posenc_tensor* pages, int64_t page_size, int64_t first) {
  return guarded([&] {
    const char* const verb = "slots_of";
    require(pages, verb, "pages");
    const Integers row = host_integers(pages, verb, "pages");
    const TensorView to = host_view(out, verb, "out");
    if (to.type != DataType::kI64 || to.strides != dense_strides(to.shape)) refuse("slots_of: out must be dense i64");
    std::vector<std::int32_t> narrow;
    for (const std::int64_t page : row.values()) narrow.push_back(page_of(page));
    const auto slots = slots_of(narrow, page_size, first, count_of(to.shape));
    for (const std::int64_t slot : slots) {  // a page that 32 bits do not hold is not the one that was computed with
      const std::int64_t page = slot / page_size;
      if (page < std::numeric_limits<std::int32_t>::max()) continue;
      refuse(fmt::format("slots_of: one of the pages is {} or more, which no cache has", page));
    }
    std::copy(slots.begin(), slots.end(), static_cast<std::int64_t*>(to.data));
  });
}

int posenc_rotate_into(const posenc_form* form, const posenc_tensor* cache, const posenc_tensor* slots,
                       const posenc_tensor* k, const posenc_positions* positions, const posenc_run* run) {
  return posenc_rotate_into_scaled(form, cache, nullptr, slots, k, positions, run);
}

int posenc_rotate_into_scaled(const posenc_form* form, const posenc_tensor* cache, const posenc_tensor* scale,
                              const posenc_tensor* slots, const posenc_tensor* k, const posenc_positions* positions,
                              const posenc_run* run) {
  return guarded([&] {
    const Rotation* const rotation = rotation_of(form, "rotate_into");
    const char* const verb = rotation == nullptr ? "copy_into" : "rotate_into";
    const HeldSlots places(slots, verb, "slots");
    const CacheView to(needed_view(cache, verb, "the cache"), view_of(scale, verb, "the scale"));
    const TensorView from = needed_view(k, verb, rotation == nullptr ? "x" : "k");
    const HeldPositions held(positions, verb);
    if (rotation != nullptr) {
      rotate_into(to, places.value, from, held.value, *rotation, run_of(run));
    } else {
      copy_into(to, places.value, from, run_of(run));
    }
  });
}

int posenc_append(const posenc_form* form, posenc_key_value cache, const posenc_tensor* slots,
                  const posenc_new_tokens* tokens, const posenc_positions* positions, const posenc_run* run) {
  return guarded([&] {
    const char* const verb = "append";
    const Rotation* const rotation = rotation_of(form, verb);
    require(tokens, verb, "tokens");
    const posenc_new_tokens given = known(tokens, "posenc_new_tokens");
    const HeldSlots places(slots, verb, "slots");
    const KeyValueCache to{
        {needed_view(cache.k, verb, "the cache of keys"), view_of(given.k_scale, verb, "the scale of keys")},
        {needed_view(cache.v, verb, "the cache of values"), view_of(given.v_scale, verb, "the scale of values")}};
    const NewTokens step{.q = view_of(given.q, verb, "q"),
                         .k = needed_view(given.k, verb, "k"),
                         .v = needed_view(given.v, verb, "v"),
                         .q_out = view_of(given.q_out, verb, "q_out"),
                         .q_norm = view_of(given.q_norm, verb, "q_norm"),
                         .k_norm = view_of(given.k_norm, verb, "k_norm"),
                         .norm_epsilon = given.norm_epsilon == 0 ? 1e-6 : given.norm_epsilon,
                         .norm_offset = given.norm_offset};
    const HeldPositions held(positions, verb);
    if (rotation != nullptr) {
      append(to, places.value, step, held.value, *rotation, run_of(run));
    } else {
      append(to, places.value, step, run_of(run));
    }
  });
}

int posenc_copy_slots(const posenc_tensor* cache, const posenc_tensor* to, const posenc_tensor* from,
                      const posenc_run* run) {
  return guarded([&] {
    const char* const verb = "copy_slots";
    const HeldSlots written(to, verb, "to"), read(from, verb, "from");
    copy_slots(needed_view(cache, verb, "the cache"), written.value, read.value, run_of(run));
  });
}

int posenc_shift_slots(const posenc_form* form, const posenc_tensor* cache, const posenc_tensor* slots, int64_t by,
                       const posenc_run* run) {
  return guarded([&] {
    const char* const verb = "shift";
    const HeldSlots places(slots, verb, "slots");
    shift(needed_view(cache, verb, "the cache"), places.value, by, form_as<Rotation>(form, verb), run_of(run));
  });
}

}  // extern "C"
