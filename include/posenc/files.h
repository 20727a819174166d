#pragma once

// Formats of tensors and metadata, read from and written to bytes: the library itself never opens a file.
#include "posenc/byte_source.h"
#include "posenc/gguf.h"
#include "posenc/json.h"
#include "posenc/npy.h"
#include "posenc/npz.h"
#include "posenc/safetensors.h"
