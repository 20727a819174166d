#pragma once

#include "cli/pages/report.h"

namespace posenc::cli {

/// The claimed properties of schemes, measured: the best-known schemes on a terminal, all of them on a page.
ReportSection properties_section();

}  // namespace posenc::cli
