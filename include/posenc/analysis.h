#pragma once

// Check an implementation, compare engines, measure the properties of a scheme.
#include "posenc/check.h"
#include "posenc/compare.h"
#include "posenc/diagnosis.h"
#include "posenc/figures.h"
#include "posenc/properties.h"
#include "posenc/random.h"
#include "posenc/report_json.h"
