// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <tuple>
#include <variant>

namespace troupe::bench::savina {

template <class Tuple>
struct variant_of;
template <class... Messages>
struct variant_of<std::tuple<Messages...>> {
  using type = std::variant<Messages...>;
};

/// Any message of a program whose actors are known by `Ref`.
template <class Program, class Ref>
using any_message = typename variant_of<typename Program::template messages<Ref>>::type;

}  // namespace troupe::bench::savina
