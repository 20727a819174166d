#pragma once

#include <cstdint>

namespace posenc::kernels::cpu {

int all_cores() noexcept;

/// body(begin, end) by reference: it is called while parallel_for runs and never after.
struct PieceBody {
  const void* object;
  void (*call)(const void* object, std::int64_t begin, std::int64_t end);
};
void parallel_pieces(std::int64_t count, std::int64_t grain, const PieceBody& body);

/// Calls body(begin, end) on pieces of [0, count), on as many threads as posenc::threads() says, the caller's own where
/// Run has a pool. `grain` is the least number of items worth a piece. Items must not depend on each other: then neither
/// do results on threads. Where the call has a workspace, each thread's memory is a part of it.
template <class Body> void parallel_for(std::int64_t count, std::int64_t grain, const Body& body) {
  parallel_pieces(count, grain, {&body, [](const void* object, std::int64_t begin, std::int64_t end) {
                                   (*static_cast<const Body*>(object))(begin, end);
                                 }});
}

}  // namespace posenc::kernels::cpu
