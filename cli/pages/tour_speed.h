#pragma once

#include "cli/pages/report.h"

namespace posenc::cli {

/// How fast a table is written here, beside plain stores to the same memory. Takes a second at most.
ReportSection speed_section();

}  // namespace posenc::cli
