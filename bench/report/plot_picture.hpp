// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>
#include <vector>

#include "../support/curves.hpp"

namespace troupe::bench {

/// How a curve looks. The first floor, troupe, the first peer and five more curves of a plot have colours and marks of their own; what comes
/// after them differs in its dashes.
struct curve_look {
  int colour = 0;      // of the page's style: class "c0" and so on; 0 is for floors, 1 for troupe, 2 for peers
  int mark = 0;        // circle, square, triangle, diamond, ...; one for each colour
  const char* dashes;  // value of stroke-dasharray; empty: a whole line
};

std::vector<curve_look> looks_of(const std::vector<curve>& curves);

/// The plot as an SVG element: axes with marks, a curve with its range for each series, and a line at the default. Colours and fonts are
/// those of the page's style. Each point tells its values where the pointer is on it.
std::string picture_of(const plot& from);

/// The names of the curves beside a piece of each line, as an HTML list.
std::string legend_of(const plot& from);

}  // namespace troupe::bench
