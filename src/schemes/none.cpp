#include "posenc/schemes/none.h"

namespace posenc {

Nothing prepare(const None&, const PrepareOptions&) { return {}; }

}  // namespace posenc
