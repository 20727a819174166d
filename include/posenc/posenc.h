#pragma once

// positions → angles → form (addition, rotation or bias) → attention.
// Each header is one step of that flow; reading them in this order is reading the table of contents. What computes is here;
// beside it, each to be included by those who want it:
//   posenc/files.h      .npy, .npz, .safetensors, .gguf and JSON, from and to bytes
//   posenc/analysis.h   check, diagnose, compare engines, properties, figures
//   posenc/cuda.h       memory, streams and clocks of a GPU
//   posenc/lessons.h    stories, questions, exercises (the target posenc::lessons)
//   posenc/distributed.h  attention over several processes (the target posenc::mpi)
#include "posenc/error.h"
#include "posenc/version.h"

#include "posenc/frequency.h"
#include "posenc/half.h"
#include "posenc/mrope.h"
#include "posenc/positions.h"
#include "posenc/tensor.h"

#include "posenc/forms.h"
#include "posenc/scheme.h"
#include "posenc/situation.h"

#include "posenc/apply.h"
#include "posenc/attention.h"
#include "posenc/backend.h"
#include "posenc/cache.h"

#include "posenc/layer.h"
#include "posenc/model.h"
