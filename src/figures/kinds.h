#pragma once

#include "posenc/figures.h"

namespace posenc::figures {

// One function per kind of figure. A request has at least one scheme.
Figure waves_figure(const Request& request);
Figure heatmap_figure(const Request& request);
Figure fingerprint_figure(const Request& request);
Figure phasors_figure(const Request& request);
Figure rotation_figure(const Request& request);
Figure dots_figure(const Request& request);
Figure similarity_figure(const Request& request);
Figure decay_figure(const Request& request);
Figure bias_figure(const Request& request);
Figure scaling_figure(const Request& request);
Figure error_figure(const Request& request);
Figure temperature_figure(const Request& request);
Figure grid_figure(const Request& request);
Figure ids_figure(const Request& request);

}  // namespace posenc::figures
