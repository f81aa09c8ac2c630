// SPDX-License-Identifier: BSD-3-Clause
// Tests: tests/messages/requests_test.cpp, tests/messages/inspect_test.cpp, tests/messages/hostile_test.cpp
#include <array>
#include <concepts>
#include <string>
#include <utility>
#include <variant>

#include <google/protobuf/descriptor.h>

#include <troupe/messages/errors.hpp>
#include <troupe/messages/message_size.hpp>
#include <troupe/messages/wire.hpp>

namespace troupe {

namespace wire_fields {

namespace {

template <class T>
using own_header = typename decltype(wire::header_of<T>(wire::own_requests))::type;

/// Returns the field of CallRequest that holds the header of this request.
template <own_request T>
const google::protobuf::FieldDescriptor* field_for() {
  static const auto* const found = [] {
    const auto& asks = *wire::CallRequest::descriptor()->oneof_decl(0);
    int i = 0;
    while (asks.field(i)->message_type() != own_header<T>::descriptor()) ++i;
    return asks.field(i);
  }();
  return found;
}

template <class... Own>
void read_own(reader<wire::CallRequest>& a, std::variant<requests::function, Own...>& x) {
  const auto& header = a.header;
  const auto read_one = [&]<class T>() {
    const auto* const field = field_for<T>();
    if (field->number() != header.asks_case()) return;
    a.refuse(
      parse(static_cast<const own_header<T>&>(header.GetReflection()->GetMessage(header, field)), x.template emplace<T>()));
  };
  (read_one.template operator()<Own>(), ...);
}

}  // namespace

void ask(writer<wire::CallRequest>& a, const request& x) {
  auto& header = a.header;
  std::visit(
    [&]<class T>(const T& what) {
      if constexpr (own_request<T>)
        put(static_cast<own_header<T>&>(*header.GetReflection()->MutableMessage(&header, field_for<T>())), what);
      else
        header.set_function(what.name);
    },
    x);
}

void ask(reader<wire::CallRequest>& a, request& x) {
  const auto& header = a.header;
  if (header.asks_case() == wire::CallRequest::ASKS_NOT_SET)
    x = requests::function{header.function()};
  else
    read_own(a, x);
  if (const auto* const tensors = std::get_if<requests::write>(&x)) {
    if (tensors->of == requests::tensors::gradients) a.refuse("a request is to write gradients, which nobody writes");
    if (static_cast<int>(tensors->names.size()) != header.tensors().kinds_size())
      a.refuse("a request to write tensors has not a name for each");
  }
}

}  // namespace wire_fields

namespace {

template <class Struct, class Header>
std::string name_in(const wire::message<Struct, Header>& one) {
  return one.name;
}

}  // namespace

std::string label_of(const request& what) {
  return std::visit(
    []<class T>(const T& x) -> std::string {
      if constexpr (std::same_as<T, requests::function> || std::same_as<T, requests::method>) {
        return x.name;
      } else {
        auto result = name_in<T>(wire::own_requests);
        constexpr std::array texts{"parameters", "buffers", "state", "gradients"};
        if constexpr (requires { x.of; }) result += texts.at(static_cast<std::size_t>(x.of));
        if constexpr (requires { x.gathered; })
          if (x.gathered) result.insert(result.rfind('.') + 1, "gathered_");
        return result;
      }
    },
    what);
}

constexpr std::size_t bytes_of_rate = 64;  // in memory; on the wire a learning rate takes less

std::size_t bytes_of(const request& what) {
  return std::visit(
    []<class T>(const T& x) {
      if constexpr (std::same_as<T, requests::function> || std::same_as<T, requests::method>) {
        return x.name.size();
      } else {
        wire_fields::own_header<T> header;
        wire_fields::put(header, x);
        std::size_t of_rates = 0;
        if constexpr (requires { x.which; }) of_rates = x.which.rates.size() * bytes_of_rate;
        return header.SpaceUsedLong() + of_rates;
      }
    },
    what);
}

void check_can_travel(const request& what, const std::string& call) {
  if (const auto bytes = bytes_of(what); bytes > max_attribute_bytes)
    throw error(errc::misuse, call + ": its values have " + std::to_string(bytes) + " bytes together, at most " +
                                std::to_string(max_attribute_bytes) + " travel in one message; send several");
}

}  // namespace troupe
