#include "cli/plots/end_labels.h"

#include <algorithm>
#include <cmath>

#include "cli/plots/ticks.h"

namespace posenc::cli {
namespace {

double end_of(const std::vector<double>& values) {
  const auto last = std::find_if(values.rbegin(), values.rend(), [](double y) { return std::isfinite(y); });
  return last == values.rend() ? 0 : *last;
}

// Separates labels, which are sorted from low to high. Each group of touching labels is centred on the mean of their
// desired heights.
void spread(std::vector<EndLabel>& labels, double height, double apart) {
  struct Group {
    std::size_t count;
    double middle;  // the height of its centre
  };
  std::vector<Group> groups;
  const auto half = [&](const Group& group) { return static_cast<double>(group.count) * apart / 2; };
  for (const EndLabel& label : labels) {
    groups.push_back({1, label.height});
    while (groups.size() > 1) {
      Group& last = groups.back();
      Group& before = groups[groups.size() - 2];
      if (before.middle + half(before) <= last.middle - half(last)) break;
      const double count = static_cast<double>(before.count + last.count);
      before.middle =
          (before.middle * static_cast<double>(before.count) + last.middle * static_cast<double>(last.count)) / count;
      before.count += last.count;
      // Keep the whole group within the panel if possible.
      const double room = std::max(height - 2 * half(before), 0.0);
      before.middle = half(before) + std::clamp(before.middle - half(before), -apart / 2, room + apart / 2);
      groups.pop_back();
    }
  }
  std::size_t next = 0;
  for (const Group& group : groups) {
    double at = group.middle - half(group) + apart / 2;
    for (std::size_t i = 0; i < group.count; ++i, at += apart) labels[next++].height = at;
  }
}

}  // namespace

std::vector<std::string> end_names(const Panel& panel) {
  std::vector<std::string> names;
  for (const Envelope& one : panel.envelopes) {
    if (!one.name.empty()) names.push_back(one.name);
  }
  for (const Series& one : panel.series) {
    if (!one.name.empty()) names.push_back(one.name);
  }
  return names;
}

bool has_one_name(const Panel& panel) { return end_names(panel).size() == 1; }

std::vector<EndLabel> end_labels(const Panel& panel, double height, double apart) {
  std::vector<EndLabel> labels;
  const auto add = [&](const std::string& name, int style, bool is_area, double y) {
    if (name.empty()) return;
    labels.push_back({name, style, is_area, std::clamp(share_of(panel.y, y), 0.0, 1.0) * height});
  };
  for (const Envelope& one : panel.envelopes)
    add(one.name, one.style, true, (end_of(one.low) + end_of(one.high)) / 2);
  for (const Series& one : panel.series) add(one.name, one.style, false, end_of(one.y));
  std::stable_sort(labels.begin(), labels.end(),
                   [](const EndLabel& one, const EndLabel& other) { return one.height < other.height; });
  if (labels.size() == 1) {
    labels.front().height = height / 2;
  } else if (panel.equal_units) {
    for (std::size_t i = 0; i < labels.size(); ++i) {
      labels[i].height = height - apart * static_cast<double>(labels.size() - i);
    }
  } else {
    spread(labels, height, apart);
  }
  return labels;
}

}  // namespace posenc::cli
