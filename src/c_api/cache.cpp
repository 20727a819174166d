#include "posenc/cache.h"

#include <algorithm>

#include "c_api/arguments.h"

using namespace posenc;         // NOLINT(google-build-using-namespace)
using namespace posenc::c_api;  // NOLINT(google-build-using-namespace)

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
    std::copy(slots.begin(), slots.end(), static_cast<std::int64_t*>(to.data));
  });
}

int posenc_rotate_into(const posenc_form* form, const posenc_tensor* cache, const posenc_tensor* slots,
                       const posenc_tensor* k, const posenc_positions* positions, const posenc_run* run) {
  return guarded([&] {
    const auto* const rotation = form == nullptr ? nullptr : std::get_if<Rotation>(&form->form);
    const char* const verb = rotation == nullptr ? "copy_into" : "rotate_into";
    if (form != nullptr && std::holds_alternative<Addition>(form->form)) {
      refuse("rotate_into: an addition belongs to the embeddings; copy keys into the cache without a form");
    }
    require(slots, verb, "slots");
    const Integers places = host_integers(slots, verb, "slots");
    const TensorView to = host_view(cache, verb, "the cache"),
                     from = host_view(k, verb, rotation == nullptr ? "x" : "k");
    const HeldPositions held(positions, verb);
    if (rotation != nullptr) {
      rotate_into(to, places.values(), from, held.value, *rotation, run_of(run));
    } else {
      copy_into(to, places.values(), from, run_of(run));
    }
  });
}

int posenc_copy_slots(const posenc_tensor* cache, const posenc_tensor* to, const posenc_tensor* from,
                      const posenc_run* run) {
  return guarded([&] {
    const char* const verb = "copy_slots";
    require(to, verb, "to");
    require(from, verb, "from");
    const Integers written = host_integers(to, verb, "to"), read = host_integers(from, verb, "from");
    copy_slots(host_view(cache, verb, "the cache"), written.values(), read.values(), run_of(run));
  });
}

int posenc_shift_slots(const posenc_form* form, const posenc_tensor* cache, const posenc_tensor* slots, int64_t by,
                       const posenc_run* run) {
  return guarded([&] {
    const char* const verb = "shift";
    require(slots, verb, "slots");
    const Integers places = host_integers(slots, verb, "slots");
    shift(host_view(cache, verb, "the cache"), places.values(), by, form_as<Rotation>(form, verb), run_of(run));
  });
}

}  // extern "C"
