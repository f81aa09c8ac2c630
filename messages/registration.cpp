// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/messages/registration.hpp>

#include <google/protobuf/stubs/logging.h>
#include <caf/actor_system_config.hpp>
#include <caf/message.hpp>

namespace troupe {

namespace {

std::string render(std::uint8_t code, caf::atom_value, const caf::message& context) {
  std::string text = to_text(static_cast<errc>(code));
  if (context.size() == 1 && context.match_element<std::string>(0)) text += ": " + context.get_as<std::string>(0);
  return text;
}

template <class... Structs, class... Headers>
void add(caf::actor_system_config& to, const wire::message_list<wire::message<Structs, Headers>...>& all) {
  const auto add_one = [&]<class Struct, class Header>(const wire::message<Struct, Header>& one) {
    if constexpr (!std::same_as<Struct, std::vector<member>>) to.add_message_type<Struct>(one.name);
  };
  (add_one.template operator()<Structs, Headers>(all), ...);
}

}  // namespace

void add_message_types(caf::actor_system_config& config) {
  google::protobuf::SetLogHandler(nullptr);
  add(config, wire::messages);
  config.add_error_category(caf::detail::error_factory<errc>::category, render);
}

}  // namespace troupe
