#pragma once

#include <cstdint>

namespace posenc::kernels::cpu {

int all_cores() noexcept;

/// body(begin, end) by reference: it is called only while parallel_for runs.
struct PieceBody {
  const void* object;
  void (*call)(const void* object, std::int64_t begin, std::int64_t end);
};
void parallel_pieces(std::int64_t count, std::int64_t grain, const PieceBody& body);

/// Calls body(begin, end) on pieces of [0, count), on posenc::threads() threads, or on the caller's pool if Run has
/// one. `grain` is the minimum number of items per piece. Items must not depend on each other; results then do not
/// depend on the number of threads. If the call has a workspace, each thread uses a part of it.
template <class Body> void parallel_for(std::int64_t count, std::int64_t grain, const Body& body) {
  parallel_pieces(count, grain, {&body, [](const void* object, std::int64_t begin, std::int64_t end) {
                                   (*static_cast<const Body*>(object))(begin, end);
                                 }});
}

}  // namespace posenc::kernels::cpu
