#include <fmt/format.h>
#include <unistd.h>
#include <utf8/core.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/arrays/array_output.h"
#include "cli/arrays/numbers.h"
#include "cli/flags/engine_flags.h"
#include "cli/flags/length_flag.h"
#include "cli/flags/type_flags.h"
#include "cli/plots/picture.h"
#include "cli/system/failure.h"
#include "cli/system/output_file.h"
#include "cli/system/streams.h"
#include "cli/system/terminal.h"
#include "cli/verbs/verbs.h"
#include "posenc/figures.h"

namespace posenc::cli {
namespace {

constexpr int kPipeColumns = 80, kMostColumns = 120;
constexpr std::int64_t kSmallestSide = 160, kLargestSide = 8000;

struct PlotFlags {
  std::string kind;
  std::string zoom, features;
  std::optional<std::int64_t> at, shift, key, head, length, trained;
  std::optional<double> factor;
  std::string numerics = "exact", type = "f64";
  std::string output, format, size;
  std::optional<std::string> title;
  std::string spec;
  bool lines = false, log_x = false, log_y = false, bound = false, compare = false;
  bool json = false, quiet = false, force = false;
  EngineFlags engine;
};

std::vector<std::string_view> kind_names() {
  std::vector<std::string_view> names;
  for (const figures::Kind& kind : figures::kinds()) names.push_back(kind.name);
  return names;
}

void add_flags(Command verb, PlotFlags& flags) {
  verb.add_option("KIND", flags.kind).choices(kind_names());
  verb.add_option("-o,--output", flags.output,
                  "write .svg, .png or .pdf; - for standard output (default: draw in the terminal)")
      .type_name("FILE");
  verb.add_choice("--format", flags.format, {"svg", "png", "pdf"}, "what -o - writes").default_value("svg");
  verb.add_option("--zoom", flags.zoom, "positions to draw (decay: distances), A to B - 1").type_name("A:B");
  verb.add_integer("--at", flags.at, {0, kPositionLimit - 1},
                   "fingerprint, phasors, rotation: the position (default 37, 10, 10)")
      .type_name("P");
  verb.add_integer("--shift", flags.shift, {-kPositionLimit, kPositionLimit},
                   "phasors: also draw the pairs K positions later; rotation: the matrix for K (default 1)")
      .type_name("K");
  verb.add_integer("--key", flags.key, {0, kPositionLimit - 1},
                   "phasors of rope: a query at --at and a key at N, and the angle between them")
      .type_name("N");
  verb.add_integer("--head", flags.head, {0, 65535}, "decay, bias: only head H (default: a selection)")
      .type_name("H");
  verb.add_flag("--log-x", flags.log_x, "decay: logarithmic distances, from 1");
  verb.add_flag("--log-y", flags.log_y, "decay: sizes |value| on a logarithmic axis");
  verb.add_flag("--bound", flags.bound, "decay: also draw RoFormer's upper bound of rotations, 1 at distance 0");
  verb.add_option("--features", flags.features, "waves, heatmap, fingerprint, grid: only these features, e.g. 0,2,4")
      .type_name("N,N,…");
  verb.add_flag("--lines", flags.lines, "bias: draw lines over distance instead of maps");
  verb.add_option("--spec", flags.spec, "ids: the prompt, e.g. 'text:5 image:8x12 video:4x8x8@1'")
      .type_name("PIECES");
  verb.add_integer("--trained", flags.trained, {1, std::int64_t{1} << 40U},
                   "scaling: the trained length (default 4096, or that of the scaling)");
  verb.add_number("--factor", flags.factor, {1, 1e6}, "scaling: extension factor")
      .default_value(fmt::format("{}", figures::Request{}.factor));
  verb.add_flag("--compare", flags.compare, "scaling: the given one next to the usual ones, and their ratio to it");
  add_numerics_flag(verb, flags.numerics);
  verb.add_choice("--dtype", flags.type, {"f64", "f32", "f16", "bf16"},
                  "dots, similarity: round the vectors to this type first");
  add_length_flag(verb, flags.length);
  verb.add_option("--title", flags.title, "title; empty for none").type_name("TEXT");
  verb.add_option("--size", flags.size, "size in pixels (PDF: points), e.g. 1200x800; text scales with it")
      .type_name("WxH");
  verb.add_flag("--json", flags.json, "print the figure's data as one JSON document");
  verb.add_flag("--force", flags.force, "replace FILE if it exists");
  verb.add_flag("--quiet", flags.quiet, "print only errors");
  add_engine_flags(verb, flags.engine);
}

const figures::Kind& kind_named(const std::string& name) {
  for (const figures::Kind& kind : figures::kinds()) {
    if (kind.name == name) return kind;
  }
  const std::vector<std::string_view> names = kind_names();
  if (name.empty()) refuse(fmt::format("plot: the kind is missing (one of {})", fmt::join(names, ", ")));
  refuse(fmt::format("plot: unknown kind '{}' ({})", name, suggestion(name, names)));
}

std::int64_t position_from(std::string_view text, std::string_view flag) {
  const std::int64_t position = integer_from(text, flag);
  if (position < 0 || position > kPositionLimit) {
    refuse(fmt::format("{}: {} is not a position, 0 to 2^53 - 1", flag, text));
  }
  return position;
}

figures::Range zoom_from(const std::string& text) {
  const std::size_t colon = text.find(':');
  if (colon == std::string::npos) refuse(fmt::format("--zoom: '{}' is not of the form A:B, e.g. 0:100", text));
  const figures::Range range = {position_from(text.substr(0, colon), "--zoom"),
                                position_from(text.substr(colon + 1), "--zoom")};
  if (range.count() < 1)
    refuse(fmt::format("--zoom: {} has no positions: {} is not above {}", text, range.to, range.from));
  return range;
}

std::vector<std::int64_t> features_from(std::string_view text) {
  std::vector<std::int64_t> features;
  while (!text.empty()) {
    const std::string_view one = text.substr(0, text.find(','));
    features.push_back(integer_from(one, "--features"));
    const bool ends_in_comma = text.size() == one.size() + 1;
    text.remove_prefix(std::min(text.size(), one.size() + 1));
    if (ends_in_comma || features.size() > 4096)
      refuse("--features: must be a list of at most 4096 features, e.g. 0,2,4");
  }
  return features;
}

// Rejects flags that this kind of figure would silently ignore.
void refuse_unused(const PlotFlags& flags) {
  const auto only_for = [&](std::string_view flag, bool is_given, std::initializer_list<std::string_view> kinds) {
    if (!is_given || std::find(kinds.begin(), kinds.end(), flags.kind) != kinds.end()) return;
    refuse(fmt::format("plot: {} works with {}, not with {}", flag, fmt::join(kinds, " and "), flags.kind));
  };
  only_for("--at", flags.at.has_value(), {"fingerprint", "phasors", "rotation"});
  only_for("--shift", flags.shift.has_value(), {"phasors", "rotation"});
  only_for("--key", flags.key.has_value(), {"phasors"});
  only_for("--head", flags.head.has_value(), {"decay", "bias"});
  only_for("--log-x", flags.log_x, {"decay"});
  only_for("--log-y", flags.log_y, {"decay"});
  only_for("--bound", flags.bound, {"decay"});
  only_for("--compare", flags.compare, {"scaling"});
  only_for("--dtype", flags.type != "f64", {"dots", "similarity"});
  only_for("--features", !flags.features.empty(), {"waves", "heatmap", "fingerprint", "grid"});
  only_for("--lines", flags.lines, {"bias"});
  only_for("--spec", !flags.spec.empty(), {"ids"});
  only_for("--trained", flags.trained.has_value(), {"scaling"});
  only_for("--factor", flags.factor.has_value(), {"scaling"});
  only_for("--zoom", !flags.zoom.empty(),
           {"waves", "heatmap", "dots", "similarity", "decay", "bias", "error", "query-factor"});
}

figures::Request request_of(const PlotFlags& flags) {
  figures::Request request;
  if (!flags.zoom.empty()) request.zoom = zoom_from(flags.zoom);
  request.at = flags.at;
  request.shift = flags.shift;
  request.key = flags.key;
  request.head = flags.head;
  request.log_x = flags.log_x;
  request.log_y = flags.log_y;
  request.has_bound = flags.bound;
  request.compares = flags.compare;
  request.features = features_from(flags.features);
  request.numerics = numerics_from(flags.numerics);
  request.type = data_type_from(flags.type);
  request.length = flags.length.value_or(0);
  request.trained = flags.trained;
  request.factor = flags.factor.value_or(request.factor);
  request.as_lines = flags.lines;
  request.spec = flags.spec;
  return request;
}

// The schemes of a command line, with the tables that the figure reads.
struct NamedSchemes {
  std::vector<SchemeRequest> requests;
  std::vector<NpyArray> tables;
};

NamedSchemes named_schemes(const figures::Kind& kind, const SchemeRequest& first,
                           const std::vector<SchemeRequest>& further) {
  NamedSchemes named;
  if (!first.is_chosen) return named;
  named.requests = {first};
  named.requests.insert(named.requests.end(), further.begin(), further.end());
  for (SchemeRequest& scheme : named.requests) {
    // which row of the table a bias reads (T5: the bucket) is known without its numbers
    const bool is_random =
        std::holds_alternative<Learned>(scheme.scheme) && (kind.name == "dots" || kind.name == "similarity");
    const bool needs_none = (is_bias(scheme.scheme) || std::holds_alternative<Resized>(scheme.scheme) || is_random) &&
                            scheme.weights_path.empty();
    named.tables.push_back(needs_none ? NpyArray{} : read_weights(scheme, {}));
  }
  return named;
}

PictureFormat picture_format_named(std::string_view name, std::string_view what) {
  if (name == "svg") return PictureFormat::kSvg;
  if (name == "png") return PictureFormat::kPng;
  if (name == "pdf") return PictureFormat::kPdf;
  refuse(fmt::format("{}: '{}' is not one of svg, png, pdf", what, name));
}

// Nothing if it is drawn in the terminal.
std::optional<PictureFormat> picture_format_of(const PlotFlags& flags) {
  if (flags.json && !flags.output.empty()) refuse("--json prints to standard output and cannot be combined with -o");
  if (flags.output != "-" && !flags.format.empty())
    refuse("--format works only with -o -; the format of a file follows from its name");
  if (flags.output.empty()) {
    if (!flags.size.empty()) refuse("--size works only with -o; in the terminal a figure fills the width");
    return std::nullopt;
  }
  if (flags.output == "-") {
    const PictureFormat format =
        flags.format.empty() ? PictureFormat::kSvg : picture_format_named(flags.format, "--format");
    refuse_terminal();
    return format;
  }
  for (const std::string_view known : {"svg", "png", "pdf"}) {
    if (flags.output.ends_with(fmt::format(".{}", known))) return picture_format_named(known, "-o");
  }
  refuse(fmt::format("{}: the output must end in .svg, .png or .pdf", flags.output));
}

void set_size(Figure& figure, const std::string& text) {
  if (text.empty()) return;
  const std::size_t cross = text.find('x');
  if (cross == std::string::npos) refuse(fmt::format("--size: '{}' is not of the form WxH, e.g. 1200x800", text));
  const auto side = [&](std::string_view digits) {
    const std::int64_t pixels = integer_from(digits, "--size");
    if (pixels < kSmallestSide || pixels > kLargestSide) {
      refuse(fmt::format("--size: {} is not from {} to {}", pixels, kSmallestSide, kLargestSide));
    }
    return static_cast<int>(pixels);
  };
  figure.width = side(text.substr(0, cross));
  figure.height = side(text.substr(cross + 1));
}

void set_title(Figure& figure, const std::optional<std::string>& title) {
  if (!title) return;
  if (!utf8::is_valid(title->begin(), title->end())) refuse("--title: is not UTF-8");
  figure.title = one_line(*title);
}

int run(const PlotFlags& flags, const SchemeRequest& first, const std::vector<SchemeRequest>& further) {
  use_engine(flags.engine);
  const figures::Kind& kind = kind_named(flags.kind);
  const std::optional<PictureFormat> format = picture_format_of(flags);
  refuse_unused(flags);
  figures::Request request = request_of(flags);
  const bool colour = wants_colour(STDOUT_FILENO);
  const int columns = isatty(STDOUT_FILENO) == 1 ? std::min(output_columns(), kMostColumns) : kPipeColumns;
  if (!format && !flags.json) {
    request.points = terminal_points(columns);
    request.cells_across = std::max(columns - 12, 8);
    request.cells_down = terminal_cells_down(colour);
  }
  const NamedSchemes named = named_schemes(kind, first, further);
  for (std::size_t i = 0; i < named.requests.size(); ++i) {
    request.schemes.push_back({named.requests[i].scheme, named.tables[i].view()});
  }
  std::optional<OutputFile> file;
  if (format && flags.output != "-") file.emplace(output_target(flags.output, flags.force));

  Figure figure = figures::make(kind.name, request);
  set_title(figure, flags.title);
  set_size(figure, flags.size);
  if (flags.json) {
    print(dump_json(figures::to_json(figure)) + "\n");
  } else if (!format) {
    print(terminal_text(figure, columns, colour));
  } else {
    const std::string picture = picture_of(figure, *format, figure.width, figure.height);
    if (!file) {
      print(picture);
      return kDone;
    }
    file->write(picture);
    file->publish();
    if (!flags.quiet) {
      tell(fmt::format("wrote {}: {}, {} x {}", flags.output, kind.name, figure.width, figure.height));
    }
  }
  return kDone;
}

std::string details() {
  std::string text = "KIND is one of:\n";
  for (const figures::Kind& kind : figures::kinds()) text += fmt::format("{}: {}\n", kind.name, kind.summary);
  return text +
         "Without SCHEME, each kind draws its default scheme. decay and scaling take several schemes, each followed "
         "by its flags. Waves too fast for the resolution are shaded instead of drawn. Pictures require gnuplot; the "
         "terminal does not.";
}

}  // namespace

Verb plot_verb(Command program, const std::shared_ptr<SchemeRequest>& scheme,
               const std::shared_ptr<std::vector<SchemeRequest>>& further) {
  static const std::string kDetails = details();
  Verb verb;
  verb.name = "plot";
  verb.summary = "draw a scheme in the terminal, or as SVG, PNG or PDF";
  verb.usage = "KIND [SCHEME ...] [-o F.svg|F.png|F.pdf] [options]";
  verb.details = kDetails;
  verb.examples =
      "posenc plot waves\n"
      "posenc plot waves sinusoidal --width 64 --zoom 0:100000 -o waves.svg\n"
      "posenc plot heatmap rope --dims 64 -o map.png --size 1200x800\n"
      "posenc plot fingerprint --at 1000003\n"
      "posenc plot phasors rope --dims 8 --at 10 --shift 3\n"
      "posenc plot rotation rope --dims 8 --shift 3\n"
      "posenc plot dots --zoom 10000000:10000032 --numerics hf-f32\n"
      "posenc plot decay rope --base 500000 alibi --heads 4 -o decay.pdf\n"
      "posenc plot bias t5 --lines --zoom 0:128\n"
      "posenc plot scaling rope --base 500000 --trained 8192 --factor 16\n"
      "posenc plot error --zoom 1:10000000 --json";
  verb.command = program.add_subcommand(verb.name);
  auto flags = std::make_shared<PlotFlags>();
  add_flags(verb.command, *flags);
  add_scheme_commands(verb.command, scheme);
  verb.run = [flags, scheme, further] { return run(*flags, *scheme, *further); };
  return verb;
}

}  // namespace posenc::cli
