// The first page and the npm package train nothing: the gradients of the reference kernels stay out of their modules.

#include "posenc/error.h"

namespace posenc::kernels {
struct AddBackwardJob;
struct BiasBackwardJob;
namespace reference {
void add_backward(const AddBackwardJob&) { raise("add_backward: there are no gradients here"); }
void bias_backward(const BiasBackwardJob&) { raise("bias_backward: there are no gradients here"); }
}  // namespace reference
}  // namespace posenc::kernels
