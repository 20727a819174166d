#include <fmt/format.h>

#include <array>

#include "lessons/tellers.h"
#include "posenc/error.h"
#include "posenc/scheme.h"

namespace posenc {
namespace {

struct Teller {
  std::string_view name;
  Story (*tell)(const lessons::StoryContent&, const StoryOptions&);
  bool takes_text = false;
};

// In the order in which they are best read.
constexpr std::array<Teller, 7> kTellers = {{{"dog-bites-man", lessons::tell_dog_bites_man, true},
                                             {"cat-sat", lessons::tell_cat_sat},
                                             {"frank-and-alex", lessons::tell_frank_and_alex},
                                             {"shift", lessons::tell_shift},
                                             {"dot-product", lessons::tell_dot_product},
                                             {"learned-or-sinusoidal", lessons::tell_learned_or_sinusoidal},
                                             {"rope", lessons::tell_rope}}};

}  // namespace

std::vector<StoryCard> stories() {
  std::vector<StoryCard> cards;
  for (const Teller& teller : kTellers) {
    const lessons::StoryContent content(teller.name);
    cards.push_back({std::string(teller.name), content.text("title"), content.text("summary")});
  }
  return cards;
}

Story tell_story(std::string_view name, const StoryOptions& options) {
  std::vector<std::string_view> names;
  for (const Teller& teller : kTellers) {
    names.push_back(teller.name);
    if (teller.name != name) continue;
    if (!options.text.empty() && !teller.takes_text) raise(fmt::format("story: {} takes no text of one's own", name));
    return teller.tell(lessons::StoryContent(name), options);
  }
  raise(fmt::format("unknown story '{}' ({})", name, suggestion(name, names)));
}

}  // namespace posenc
