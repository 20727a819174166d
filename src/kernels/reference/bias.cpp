// The definition of bias, as plain as possible: one score at a time.

#include "kernels/element.h"
#include "terms/terms.h"

namespace posenc::kernels::reference {

void bias(const BiasJob& job) {
  const terms::TokenPlaces places{job.queries, job.keys, false};
  const terms::Tokens tokens{places};
  with_type(job.out.type, [&](auto kind) {
    using T = decltype(kind);
    for (std::int64_t b = 0; b < job.out.batch; ++b) {
      for (std::int64_t h = 0; h < job.out.heads; ++h) {
        for (std::int64_t i = 0; i < job.out.sequence; ++i) {
          T* const row = job.out.row<T>(b, h, i);
          for (std::int64_t j = 0; j < job.out.features; ++j) {
            row[j * job.out.feature_stride] = numerics::narrow<T>(terms::element(*job.form, {tokens, b, h, i, j}));
          }
        }
      }
    }
  });
}

}  // namespace posenc::kernels::reference
