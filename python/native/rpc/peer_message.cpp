// SPDX-License-Identifier: BSD-3-Clause
#include "rpc/peer_message.hpp"

#include <cstddef>
#include <cstring>
#include <type_traits>
#include <utility>
#include <variant>

#include <troupe/messages/errors.hpp>

namespace torchtroupe {

namespace {

template <class T>
void put(std::string& to, T number) {
  to.append(reinterpret_cast<const char*>(&number), sizeof number);
}

void put_text(std::string& to, const std::string& text) {
  put(to, static_cast<std::uint32_t>(text.size()));
  to += text;
}

template <class T>
void put_entry(std::string& to, const T& value) {
  if constexpr (std::is_same_v<T, std::string>)
    put_text(to, value);
  else if constexpr (std::is_same_v<T, bool>)
    put(to, std::int64_t{value});
  else
    put(to, value);
}

struct reader {
  const std::string& bytes;
  std::size_t at = 0;

  const char* take(std::size_t size) {
    if (bytes.size() - at < size)
      throw troupe::error(troupe::errc::malformed_message, "the values of a call can't be read: they end too early");
    return bytes.data() + std::exchange(at, at + size);
  }
  template <class T>
  T number() {
    T result;
    std::memcpy(&result, take(sizeof result), sizeof result);
    return result;
  }
  std::string text() {
    const auto size = number<std::uint32_t>();
    return {take(size), size};
  }
  template <class T>
  T entry() {
    if constexpr (std::is_same_v<T, std::string>)
      return text();
    else
      return number<T>();
  }
  template <class T>
  std::vector<T> list(std::uint32_t count) {
    std::vector<T> result;
    for (; count > 0; --count) result.push_back(entry<T>());
    return result;
  }
};

}  // namespace

std::string to_bytes(const troupe::attributes& values) {
  std::string result;
  for (const auto& [name, each] : values) {
    put_text(result, name);
    result.push_back(static_cast<char>(each.value.index()));
    std::visit(
      [&](const auto& value) {
        using type = std::decay_t<decltype(value)>;
        if constexpr (std::is_arithmetic_v<type> || std::is_same_v<type, std::string>) {
          put(result, std::uint32_t{1});
          put_entry(result, value);
        } else {
          put(result, static_cast<std::uint32_t>(value.size()));
          for (const auto& entry : value) put_entry(result, entry);
        }
      },
      each.value);
  }
  return result;
}

troupe::attributes from_bytes(const std::string& bytes) {
  troupe::attributes result;
  reader from{bytes};
  while (from.at < bytes.size()) {
    auto name = from.text();
    const auto kind = from.number<std::uint8_t>();
    const auto count = from.number<std::uint32_t>();
    auto& to = result[std::move(name)].value;
    switch (kind) {
      case 0:
        to = from.number<std::int64_t>() != 0;
        break;
      case 1:
        to = from.number<std::int64_t>();
        break;
      case 2:
        to = from.number<double>();
        break;
      case 3:
        to = from.text();
        break;
      case 4:
        to = from.list<std::int64_t>(count);
        break;
      case 5:
        to = from.list<double>(count);
        break;
      case 6:
        to = from.list<std::string>(count);
        break;
      default:
        throw troupe::error(troupe::errc::malformed_message, "the values of a call can't be read: an unknown kind");
    }
  }
  return result;
}

}  // namespace torchtroupe
