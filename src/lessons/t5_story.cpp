#include <fmt/format.h>

#include <cmath>

#include "lessons/quantities.h"
#include "lessons/story_builder.h"
#include "lessons/story_matrices.h"
#include "lessons/tellers.h"

namespace posenc::lessons {
namespace {

// n if n < `exact`; else floor(exact + ln(n/exact) / ln(max/exact) · (buckets − exact)), at most the last bucket.
CellTerms bucket_terms(double distance, double buckets, double max_distance, double first) {
  const double exact = buckets / 2;
  CellTerms cell;
  if (distance < exact) {
    cell = {"the distance itself", {{{"first bucket", first}}, {{"distance", distance}}}};
    return cell;
  }
  const double rate = (buckets - exact) / std::log(max_distance / exact);
  const double bucket = exact + std::log(distance / exact) * rate;
  if (bucket >= buckets) return {"the last bucket", {{{"first bucket", first}}, {{"buckets − 1", buckets - 1}}}};
  cell = {"floor(exact + ln(distance / exact) · (buckets − exact) / ln(max_distance / exact))",
          {{{"first bucket", first}},
           {{"exact", exact}},
           {{fmt::format("ln({:g} / {:g})", distance, exact), std::log(distance / exact)},
            {fmt::format("({:g} − {:g}) / ln({:g} / {:g})", buckets, exact, max_distance, exact), rate}}}};
  cell.function = "floor";
  return cell;
}

// The smallest distance whose bucket is the last one: below max_distance, which only ends the logarithm.
std::int64_t first_in_last_bucket(const DistanceMap& behind) {
  const std::int64_t last = entry_at(behind, behind.first);
  std::int64_t distance = 0;
  while (entry_at(behind, -distance) != last) ++distance;
  return distance;
}

}  // namespace

Story tell_t5_buckets(const StoryContent& content, const StoryOptions& options) {
  StoryBuilder story(content, options);
  const std::int64_t buckets = content.integer("buckets"), max_distance = content.integer("max_distance");
  const T5 decoder{.heads = 1, .buckets = buckets, .max_distance = max_distance, .bidirectional = false};
  T5 encoder = decoder;
  encoder.bidirectional = true;
  const DistanceMap behind = buckets_of(decoder), both = buckets_of(encoder);
  const std::vector<std::int64_t> distances = content.integers("distances");
  story.say("buckets", std::to_string(buckets));
  story.say("last_from", std::to_string(first_in_last_bucket(behind)));
  story.say("encoder_last_from", std::to_string(first_in_last_bucket(both)));
  story.say("exact", std::to_string(buckets / 2));
  story.say("last_bucket", std::to_string(buckets - 1));
  story.say("half", std::to_string(buckets / 2));
  story.say("half_exact", std::to_string(buckets / 4));

  story.step("idea");
  story.formula("score(m, n) + table[bucket(n − m), head]");

  const auto one_way = static_cast<double>(buckets), most = static_cast<double>(max_distance);
  story.step("decoder");
  std::vector<double> values;
  std::vector<CellTerms> cells;
  for (const std::int64_t distance : distances) {
    values.push_back(static_cast<double>(entry_at(behind, -distance)));
    cells.push_back(bucket_terms(static_cast<double>(distance), one_way, most, 0));
  }
  StoryMatrix shown = computed({"D", "D: decoder, keys behind the query", as_labels(distances), {"bucket"}},
                               std::move(values), std::move(cells));
  shown.digits = 0;
  story.show(shown);

  story.step("encoder");
  std::vector<double> two_values;
  std::vector<CellTerms> two_cells;
  for (const std::int64_t distance : distances) {
    two_values.push_back(static_cast<double>(entry_at(both, -distance)));
    two_cells.push_back(bucket_terms(static_cast<double>(distance), one_way / 2, most, 0));
    two_values.push_back(static_cast<double>(entry_at(both, distance)));
    two_cells.push_back(
        bucket_terms(static_cast<double>(distance), one_way / 2, most, distance == 0 ? 0 : one_way / 2));
  }
  StoryMatrix two = computed({"E", "E: encoder", as_labels(distances), {"behind", "ahead"}}, std::move(two_values),
                             std::move(two_cells));
  two.digits = 0;
  story.show(two);

  story.step("length");
  story.show({count("parameters per head", buckets),
              count("first distance in the decoder's last bucket", first_in_last_bucket(behind))});
  story.note("scale");
  return story.finish();
}

}  // namespace posenc::lessons
