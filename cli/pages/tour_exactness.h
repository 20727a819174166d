#pragma once

#include "cli/pages/report.h"

namespace posenc::cli {

/// One row at a large position, computed in three ways: ours, the usual float32 angle, and the C library's widest
/// type as an independent check.
ReportSection exactness_section();

}  // namespace posenc::cli
