#pragma once

// positions → angles → form (addition, rotation or bias) → attention.
// Each header is one step of that flow; reading them in this order is reading the table of contents.
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
#include "posenc/cuda.h"

#include "posenc/byte_source.h"
#include "posenc/gguf.h"
#include "posenc/json.h"
#include "posenc/npy.h"
#include "posenc/npz.h"
#include "posenc/safetensors.h"

#include "posenc/check.h"
#include "posenc/compare.h"
#include "posenc/content.h"
#include "posenc/diagnosis.h"
#include "posenc/figures.h"
#include "posenc/layer.h"
#include "posenc/model.h"
#include "posenc/properties.h"
#include "posenc/random.h"
#include "posenc/story.h"

#include "posenc/exercise.h"
#include "posenc/formula.h"
#include "posenc/question.h"
#include "posenc/review.h"
