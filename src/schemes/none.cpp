#include "posenc/schemes/none.h"

namespace posenc {

Nothing prepare(const None&, const Situation&) { return {}; }

}  // namespace posenc
