#include <fmt/format.h>

#include <array>

#include "lessons/content_json.h"
#include "lessons/tellers.h"
#include "posenc/error.h"
#include "posenc/scheme.h"

namespace posenc {
namespace {

struct Teller {
  std::string_view name;
  Story (*tell)(const lessons::StoryContent&, const StoryOptions&);
  bool takes_text = false, takes_start = false, takes_position = false;
};

// In no particular order: content/topics.json has the order in which they are taught.
constexpr std::array<Teller, 21> kTellers = {{{"dog-bites-man", lessons::tell_dog_bites_man, true},
                                              {"permutation-proof", lessons::tell_permutation_proof},
                                              {"nope", lessons::tell_nope},
                                              {"cat-sat", lessons::tell_cat_sat, false, true},
                                              {"frank-and-alex", lessons::tell_frank_and_alex, true, false, true},
                                              {"shift", lessons::tell_shift, false, true},
                                              {"look-back", lessons::tell_look_back},
                                              {"dot-product", lessons::tell_dot_product},
                                              {"learned-or-sinusoidal", lessons::tell_learned_or_sinusoidal},
                                              {"why-inside-attention", lessons::tell_why_inside_attention},
                                              {"rope", lessons::tell_rope},
                                              {"kv-cache", lessons::tell_kv_cache},
                                              {"context-extension", lessons::tell_context_extension},
                                              {"alibi", lessons::tell_alibi},
                                              {"t5-buckets", lessons::tell_t5_buckets},
                                              {"who-extrapolates", lessons::tell_who_extrapolates},
                                              {"decay", lessons::tell_decay},
                                              {"patches", lessons::tell_patches},
                                              {"video", lessons::tell_video},
                                              {"nope-layers", lessons::tell_nope_layers},
                                              {"float32-angles", lessons::tell_float32_angles}}};

}  // namespace

std::vector<StoryCard> stories() {
  std::vector<StoryCard> cards;
  for (const std::string& name : lessons::story_names()) {
    const lessons::StoryContent content(name);
    cards.push_back({name, content.text("title"), content.text("summary")});
  }
  return cards;
}

Story tell_story(std::string_view name, const StoryOptions& options) {
  std::vector<std::string_view> names;
  for (const Teller& teller : kTellers) {
    names.push_back(teller.name);
    if (teller.name != name) continue;
    if (!(options.text.empty() && options.other.empty()) && !teller.takes_text)
      raise(fmt::format("story: --text works only with dog-bites-man and frank-and-alex, not with {}", name));
    if (!options.start.empty() && !teller.takes_start) {
      raise(fmt::format("story: --start works only with cat-sat and shift, not with {}", name));
    }
    if ((options.base || options.width || options.concatenated) && !teller.takes_position) {
      raise(fmt::format("story: --{} works only with frank-and-alex, not with {}",
                        options.base    ? "base"
                        : options.width ? "width"
                                        : "concatenate",
                        name));
    }
    return teller.tell(lessons::StoryContent(name), options);
  }
  raise(fmt::format("unknown story '{}' ({})", name, suggestion(name, names)));
}

}  // namespace posenc
