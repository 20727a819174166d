#pragma once

#include "posenc/terms/numbered.h"

namespace posenc {

/// c_m − c_n, where c_t = g_0 + … + g_t and g is AttentionOptions::log_gates: every token after the key, up to and
/// including the query's, multiplies the key's weight by its gate (Forgetting Transformer). Only the order of the tokens
/// matters; positions are ignored.
struct GateSums {};
template <> struct NumberedTerm<4> { using Type = GateSums; };

}  // namespace posenc
