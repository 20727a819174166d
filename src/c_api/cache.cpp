#include "posenc/cache.h"

#include "c_api/arguments.h"

using namespace posenc;         // NOLINT(google-build-using-namespace)
using namespace posenc::c_api;  // NOLINT(google-build-using-namespace)

extern "C" {

int posenc_rotate_into(const posenc_form* form, const posenc_tensor* cache, const posenc_tensor* slots,
                       const posenc_tensor* k, const posenc_positions* positions, const posenc_run* run) {
  return guarded([&] {
    const char* const verb = "rotate_into";
    require(slots, verb, "slots");
    const Integers places = host_integers(slots, verb, "slots");
    const TensorView to = host_view(cache, verb, "the cache"), from = host_view(k, verb, "k");
    const HeldPositions held(positions, verb);
    const auto* const rotation = form == nullptr ? nullptr : std::get_if<Rotation>(&form->form);
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
