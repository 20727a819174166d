#include "explorer/wasm/call.h"

namespace posenc::page {

std::span<const NamedCall> calls() {
  static constexpr NamedCall kCalls[] = {
      {"figure", figure},
      {"table", table},
      {"dots", dots},
      {"frequencies", frequencies},
      {"scores", scores},
      {"story", story},
      {"cell", cell},
      {"schemes", list_schemes},
      {"prove", prove_scheme},
      {"model", model},
      {"diagnose", diagnosis},
      {"exercise", make_exercise},
      {"grade", grade_answer},
      {"questions", list_questions},
      {"cards", list_cards},
      {"review", review},
      {"closest", closest},
      {"sentence", sentence},
      {"cost", cost},
      {"walkthroughs", list_walkthroughs},
      {"grade-blank", grade_blank},
  };
  return kCalls;
}

}  // namespace posenc::page
