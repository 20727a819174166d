#pragma once

#include "cli/pages/report.h"

namespace posenc::cli {

/// One row far out, by three ways: ours, the usual float32 angle, and the C library's widest type as a witness.
ReportSection exactness_section();

}  // namespace posenc::cli
