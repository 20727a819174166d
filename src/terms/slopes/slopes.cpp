#include "terms/slopes/slopes.h"

#include "terms/tables.h"

namespace posenc::terms {

void Term<Slopes>::check(std::string_view verb, const Slopes& source, std::int64_t heads) {
  check_size(verb, "slopes", source.slopes.size(), static_cast<std::size_t>(heads));
}

}  // namespace posenc::terms
