// What the first page does without: core.wasm has the tables of waves and their figures, tools.wasm has everything. The
// page asks the other module where this one says so (src/core.ts).

#include "posenc/error.h"
#include "posenc/figures.h"
#include "posenc/scheme.h"

namespace posenc {
namespace {
[[noreturn]] void elsewhere() { raise("is in tools.wasm"); }
}  // namespace

Addition prepare(const Learned&, const Situation&) { elsewhere(); }
Addition prepare(const Resized&, const Situation&) { elsewhere(); }
Rotation prepare(const PatchRope&, const Situation&) { elsewhere(); }
Nothing prepare(const QueryTemperature&, const Situation&) { elsewhere(); }
TrainedTable Resized::trained_table() const { elsewhere(); }
Bias prepare(const Alibi&, const Situation&) { elsewhere(); }
Bias prepare(const Cope&, const Situation&) { elsewhere(); }
Bias prepare(const Deberta&, const Situation&) { elsewhere(); }
Bias prepare(const Decomposed&, const Situation&) { elsewhere(); }
Bias prepare(const Fire&, const Situation&) { elsewhere(); }
Bias prepare(const ForgetGate&, const Situation&) { elsewhere(); }
Bias prepare(const Kerple&, const Situation&) { elsewhere(); }
Bias prepare(const LogCpb&, const Situation&) { elsewhere(); }
Bias prepare(const RelativeLogits&, const Situation&) { elsewhere(); }
Bias prepare(const Sandwich&, const Situation&) { elsewhere(); }
Bias prepare(const Shaw&, const Situation&) { elsewhere(); }
Bias prepare(const Swin&, const Situation&) { elsewhere(); }
Bias prepare(const T5&, const Situation&) { elsewhere(); }
Bias prepare(const TransformerXl&, const Situation&) { elsewhere(); }

namespace figures {
Figure dots_figure(const Request&) { elsewhere(); }
Figure similarity_figure(const Request&) { elsewhere(); }
Figure decay_figure(const Request&) { elsewhere(); }
Figure bias_figure(const Request&) { elsewhere(); }
Figure scaling_figure(const Request&) { elsewhere(); }
Figure error_figure(const Request&) { elsewhere(); }
Figure temperature_figure(const Request&) { elsewhere(); }
Figure grid_figure(const Request&) { elsewhere(); }
Figure ids_figure(const Request&) { elsewhere(); }
}  // namespace figures
}  // namespace posenc
