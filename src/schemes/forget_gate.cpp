#include "posenc/schemes/forget_gate.h"

namespace posenc {

Bias prepare(const ForgetGate&, const PrepareOptions&) { return {0, GateSums{}}; }

}  // namespace posenc
