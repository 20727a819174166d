#include "posenc/mrope.h"

#include <algorithm>

#include "c_api/arguments.h"

using namespace posenc;         // NOLINT(google-build-using-namespace)
using namespace posenc::c_api;  // NOLINT(google-build-using-namespace)

namespace {

MropePiece piece_of(const posenc_mrope_piece* piece) {
  const posenc_mrope_piece given = known(piece, "posenc_mrope_piece");
  return {.text = given.text,
          .frames = given.frames,
          .rows = given.rows,
          .columns = given.columns,
          .time_step = given.time_step,
          .seconds = given.seconds,
          .sound = given.sound};
}

MropeOptions mrope_options_of(const posenc_mrope_options* options) {
  const posenc_mrope_options given = known(options, "posenc_mrope_options");
  MropeOptions made{.first = given.first,
                    .advance = given.advance_largest != 0 ? MropeAdvance::kLargest : MropeAdvance::kGrid};
  if (given.merge != 0) made.merge = given.merge;
  if (given.rate != 0) made.rate = given.rate;
  if (given.chunk != 0) made.chunk = given.chunk;
  return made;
}

}  // namespace

extern "C" int posenc_mrope_positions(const posenc_tensor* out, const posenc_mrope_piece* pieces, size_t count,
                                      const posenc_mrope_options* options, int64_t* tokens, int64_t* next) {
  return guarded([&] {
    const char* const verb = "mrope_positions";
    if (count > 0) require(pieces, verb, "pieces");
    std::vector<MropePiece> all;
    const char* at = reinterpret_cast<const char*>(pieces);
    for (size_t i = 0; i < count; ++i, at += pieces->size) {
      all.push_back(piece_of(reinterpret_cast<const posenc_mrope_piece*>(at)));
    }
    const MropePositions made = mrope_positions(all, mrope_options_of(options));
    if (out != nullptr) {
      const TensorView to = host_view(out, verb, "out");
      if (to.type != DataType::kI64 || to.shape != Extents{3, made.tokens} || !is_dense(to)) {
        refuse(fmt::format("{}: out must be dense i64 of shape {}", verb, to_string(Extents{3, made.tokens})));
      }
      std::copy(made.ids.begin(), made.ids.end(), static_cast<std::int64_t*>(to.data));
    }
    if (tokens != nullptr) *tokens = made.tokens;
    if (next != nullptr) *next = made.next;
  });
}
