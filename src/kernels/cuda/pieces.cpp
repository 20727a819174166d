#include "kernels/cuda/pieces.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <mutex>
#include <utility>
#include <vector>

#include "kernels/cuda/module.h"
#include "kernels/element.h"
#include "posenc/backend.h"

namespace posenc::kernels::cuda {
namespace {

// Kept from call to call, because pinned memory takes milliseconds to allocate.
struct KeptMemory {
  std::mutex lock;
  Context context = nullptr;
  std::size_t bytes_in = 0, bytes_out = 0;
  Pieces::Place places[Pieces::kPlaces];
};
KeptMemory& kept() {
  static KeptMemory& all = *new KeptMemory;
  return all;
}

void make_room(KeptMemory& all, std::size_t bytes_in, std::size_t bytes_out) {
  const Driver& d = driver();
  const Context context = ensure_context();
  if (all.context == context && all.bytes_in >= bytes_in && all.bytes_out >= bytes_out) return;
  for (Pieces::Place& place : all.places) {
    if (all.context == context) {
      d.cuMemFreeHost(place.in), d.cuMemFreeHost(place.out);
      d.cuMemFree_v2(place.gpu_in), d.cuMemFree_v2(place.gpu_out);
      d.cuStreamDestroy_v2(place.stream);
    }
    place = {};
  }
  all.context = nullptr;
  for (Pieces::Place& place : all.places) {
    void *in = nullptr, *out = nullptr;
    check(d.cuMemHostAlloc(&in, bytes_in, kHostPortable), "allocating host memory");
    check(d.cuMemHostAlloc(&out, bytes_out, kHostPortable), "allocating host memory");
    place.in = static_cast<std::byte*>(in), place.out = static_cast<std::byte*>(out);
    check(d.cuMemAlloc_v2(&place.gpu_in, bytes_in), fmt::format("allocating {} bytes", bytes_in));
    check(d.cuMemAlloc_v2(&place.gpu_out, bytes_out), fmt::format("allocating {} bytes", bytes_out));
    check(d.cuStreamCreate(&place.stream, 1), "making a stream");  // 1: it does not wait for the default stream
  }
  all.context = context, all.bytes_in = bytes_in, all.bytes_out = bytes_out;
}

}  // namespace

Pieces::Pieces(std::size_t bytes_in, std::size_t bytes_out) : places_(kept().places) {
  std::unique_lock<std::mutex> hold(kept().lock);
  make_room(kept(), std::max<std::size_t>(bytes_in, 1), std::max<std::size_t>(bytes_out, 1));
  hold.release();  // until the end of the call
}
Pieces::~Pieces() {
  for (int n = 0; n < kPlaces; ++n) {
    driver().cuStreamSynchronize(places_[n].stream);
    places_[n].take_back = {};
  }
  kept().lock.unlock();
}

void Pieces::settle(Place& place) {
  if (!place.take_back) return;
  const auto take_back = std::exchange(place.take_back, {});
  synchronize(place.run());
  take_back(place.out);
}
Pieces::Place& Pieces::next() {
  Place& place = places_[turn_];
  turn_ = (turn_ + 1) % kPlaces;
  settle(place);
  return place;
}
void Pieces::send(const Place& place, std::size_t bytes) {
  check(driver().cuMemcpyHtoDAsync_v2(place.gpu_in, place.in, bytes, place.stream), "copying to the GPU");
}
void Pieces::fetch(Place& place, std::size_t bytes, std::function<void(const std::byte*)> take_back) {
  check(driver().cuMemcpyDtoHAsync_v2(place.out, place.gpu_out, bytes, place.stream), "copying from the GPU");
  place.take_back = std::move(take_back);
}
void Pieces::finish() {
  for (int n = 0; n < kPlaces; ++n) settle(places_[(turn_ + n) % kPlaces]);
}

namespace {

// copy(row of the tensor, offset of the row in the dense memory, in elements)
template <class T, class Void, class Copy>
void for_rows(const HeadTensor<Void>& x, std::int64_t b, std::int64_t first, std::int64_t count, const Copy& copy) {
  for (std::int64_t h = 0; h < x.heads; ++h) {
    for (std::int64_t t = 0; t < count; ++t) {
      copy(x.template row<T>(b, h, first + t), (h * count + t) * x.features);
    }
  }
}

}  // namespace

void gather(std::byte* to, const HeadTensor<const void>& from, std::int64_t b, std::int64_t first,
            std::int64_t count) {
  with_type(from.type, [&](auto kind) {
    using T = decltype(kind);
    T* const dense = reinterpret_cast<T*>(to);
    for_rows<T>(from, b, first, count, [&](const T* row, std::int64_t at) {
      if (from.feature_stride == 1) {
        std::memcpy(dense + at, row, static_cast<std::size_t>(from.features) * sizeof(T));
      } else {
        for (std::int64_t f = 0; f < from.features; ++f) dense[at + f] = row[f * from.feature_stride];
      }
    });
  });
}
void scatter(const HeadTensor<void>& to, const std::byte* from, std::int64_t b, std::int64_t first,
             std::int64_t count) {
  with_type(to.type, [&](auto kind) {
    using T = decltype(kind);
    const T* const dense = reinterpret_cast<const T*>(from);
    for_rows<T>(to, b, first, count, [&](T* row, std::int64_t at) {
      if (to.feature_stride == 1) {
        std::memcpy(row, dense + at, static_cast<std::size_t>(to.features) * sizeof(T));
      } else {
        for (std::int64_t f = 0; f < to.features; ++f) row[f * to.feature_stride] = dense[at + f];
      }
    });
  });
}

TokenPositions positions_of_piece(const TokenPositions& all, std::int64_t b, std::int64_t first, std::int64_t count,
                                  std::vector<std::int64_t>& ids) {
  TokenPositions piece = all;
  piece.first += first;
  if (!all.has_ids()) return piece;
  ids.clear();
  for (int axis = 0; axis < all.axes; ++axis) {
    for (std::int64_t t = first; t < first + count; ++t) ids.push_back(all.at(b, t, axis));
  }
  piece.ids = ids.data();
  piece.narrow_ids = nullptr;
  piece.batch_stride = 0, piece.axis_stride = count;
  piece.count = static_cast<std::int64_t>(ids.size());
  return piece;
}

}  // namespace posenc::kernels::cuda
