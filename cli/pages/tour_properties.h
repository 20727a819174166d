#pragma once

#include "cli/pages/report.h"

namespace posenc::cli {

/// What is said of schemes, measured: the best known ones on a terminal, all of them on a page.
ReportSection properties_section();

}  // namespace posenc::cli
