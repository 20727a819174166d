#pragma once

#include "cli/pages/report.h"

namespace posenc::cli {

/// One row at a large position, computed in three ways: exactly by the library, with the usual float32 angle, and as
/// an independent check with the C library's widest type.
ReportSection exactness_section();

}  // namespace posenc::cli
