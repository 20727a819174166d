#pragma once

// positions → angles → form (addition, rotation or bias) → attention.
// Each header is one step of that flow, so this list is also the table of contents. It includes everything that computes;
// the rest is in separate headers, to be included where needed:
//   posenc/files.h      .npy, .npz, .safetensors, .gguf and JSON, from and to bytes
//   posenc/analysis.h   check, diagnose, compare engines, properties, figures
//   posenc/cuda.h       GPU memory, streams and timers
//   posenc/lessons.h    stories, questions, exercises (the target posenc::lessons)
#include "posenc/error.h"
#include "posenc/version.h"

#include "posenc/frequency.h"
#include "posenc/half.h"
#include "posenc/mrope.h"
#include "posenc/position_check.h"
#include "posenc/positions.h"
#include "posenc/tensor.h"

#include "posenc/forms.h"
#include "posenc/prepare_options.h"
#include "posenc/scheme.h"

#include "posenc/apply.h"
#include "posenc/attention.h"
#include "posenc/backend.h"
#include "posenc/cache.h"

#include "posenc/layer.h"
#include "posenc/model.h"
