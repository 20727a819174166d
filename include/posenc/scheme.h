#pragma once

#include <concepts>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "posenc/forms.h"
#include "posenc/function_ref.h"
#include "posenc/prepare_options.h"
#include "posenc/schemes/alibi.h"
#include "posenc/schemes/cope.h"
#include "posenc/schemes/deberta.h"
#include "posenc/schemes/decomposed.h"
#include "posenc/schemes/fire.h"
#include "posenc/schemes/fope.h"
#include "posenc/schemes/forget_gate.h"
#include "posenc/schemes/kerple.h"
#include "posenc/schemes/learned.h"
#include "posenc/schemes/log_cpb.h"
#include "posenc/schemes/none.h"
#include "posenc/schemes/patch_rope.h"
#include "posenc/schemes/relative_logits.h"
#include "posenc/schemes/resized.h"
#include "posenc/schemes/rope.h"
#include "posenc/schemes/rope_mixed.h"
#include "posenc/schemes/sandwich.h"
#include "posenc/schemes/shaw.h"
#include "posenc/schemes/shift.h"
#include "posenc/schemes/sinusoidal.h"
#include "posenc/schemes/steps.h"
#include "posenc/schemes/swin.h"
#include "posenc/schemes/t5.h"
#include "posenc/schemes/temperature.h"
#include "posenc/schemes/transformer_xl.h"

namespace posenc {

class Json;

/// A field visitor that does nothing; it documents the signature: visit(name, pointer to member, help).
struct AnyVisitor {
  template <class Member> void operator()(std::string_view, Member, std::string_view) const {}
};

/// What makes a struct a scheme: a plain value that declares its name, its formula and its fields.
template <class S>
concept SchemeType = std::regular<S> && requires(const S& scheme, const PrepareOptions& options) {
  { S::name } -> std::convertible_to<std::string_view>;
  { S::family } -> std::convertible_to<std::string_view>;
  { S::formula } -> std::convertible_to<std::string_view>;
  { S::used_by } -> std::convertible_to<std::string_view>;
  S::fields(AnyVisitor{});
  prepare(scheme, options);
};

/// The one list of schemes. `posenc list`, flags, JSON and the docs follow from it.
using Scheme = std::variant<None, Sinusoidal, Learned, Rope, Alibi, T5, Kerple, Fire, Sandwich, Shaw, Deberta,
                            TransformerXl, RelativeLogits, ForgetGate, Cope, Swin, LogCpb, Decomposed,
                            QueryTemperature, Resized, PatchRope, RopeMixed, Fope, Steps, Shift>;

/// Turns a scheme into the form that kernels understand: once per model, or once per length if it depends on the length.
/// Throws: Error that names scheme, field, value and rule.
Form prepare(const Scheme& scheme, const PrepareOptions& options = {});

std::string_view name_of(const Scheme& scheme) noexcept;

/// Whether its form is a bias, or a rotation.
bool is_bias(const Scheme& scheme) noexcept;
bool is_rotation(const Scheme& scheme) noexcept;

/// Whether it supports fractional positions (PrepareOptions::denominators).
bool takes_fractions(const Scheme& scheme) noexcept;

/// Whether it supports only exact angles, not the float32 angles of engines.
bool is_exact_alone(const Scheme& scheme) noexcept;

/// What it needs in addition to its fields; see prepare_options.h.
LengthNeed length_need_of(const Scheme& scheme);
TrainedTable trained_table_of(const Scheme& scheme);
/// "[buckets, heads]".
std::string axes_text(const TrainedTable& table);

/// Fills empty fields of trained numbers from `next`, which returns numbers in [−1, 1). False if there are none to fill.
bool draw_trained(Scheme& scheme, FunctionRef<double()> next);

/// Every scheme's name, in the order of the list.
std::vector<std::string_view> scheme_names();

/// The scheme of this name with default fields.
/// Throws: Error for an unknown name, with a suggestion if one is close.
Scheme scheme_named(std::string_view name);

/// The name in `names` that was probably meant, or "" if none is close.
std::string_view nearest_name(std::string_view name, const std::vector<std::string_view>& names);
/// For a name that is not in `names`: "did you mean 'rope'?", or "choose from: none, rope" if none is close.
std::string suggestion(std::string_view name, const std::vector<std::string_view>& names);

/// {"scheme":"sinusoidal","width":512,…}: every field, in order.
std::string to_json(const Scheme& scheme);
Json json_of(const Scheme& scheme);
/// Fields that are missing keep their defaults.
/// Throws: Error for malformed JSON, unknown schemes, unknown or repeated fields, wrong types.
Scheme scheme_from_json(std::string_view json);
Scheme scheme_from(const Json& json);

}  // namespace posenc
