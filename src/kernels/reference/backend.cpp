#include "kernels/reference/functions.h"

namespace posenc::kernels {

const Backend kReferenceBackend = {"reference",        &reference::add,  &reference::add_backward,
                                   &reference::rotate, &reference::bias, &reference::bias_backward};

}  // namespace posenc::kernels
