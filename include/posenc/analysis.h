#pragma once

// Is an implementation right, where do engines differ, what does a scheme do: each answer is measured.
#include "posenc/check.h"
#include "posenc/compare.h"
#include "posenc/diagnosis.h"
#include "posenc/figures.h"
#include "posenc/properties.h"
#include "posenc/random.h"
#include "posenc/report_json.h"
