#pragma once

// Files of tensors and metadata, from and to bytes: the library opens none of them.
#include "posenc/byte_source.h"
#include "posenc/gguf.h"
#include "posenc/json.h"
#include "posenc/npy.h"
#include "posenc/npz.h"
#include "posenc/safetensors.h"
