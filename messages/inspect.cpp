// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/messages/inspect.hpp>

#include <algorithm>
#include <array>
#include <concepts>
#include <cstdio>
#include <cstring>

#include <caf/binary_deserializer.hpp>
#include <caf/binary_serializer.hpp>

#include <troupe/messages/arriving_tensors.hpp>
#include <troupe/messages/caf_error.hpp>
#include <troupe/messages/framing.hpp>
#include <troupe/messages/message_size.hpp>
#include <troupe/messages/read_errors.hpp>
#include <troupe/messages/sender_check.hpp>
#include <troupe/messages/tensor_codec.hpp>
#include <troupe/messages/trailing_elements.hpp>
#include <troupe/messages/wire.hpp>

namespace troupe {

namespace {

constexpr std::size_t prefix_bytes = 12;               // length of the header (uint32) and of the payload (uint64)
constexpr std::size_t stack_bytes = 512;               // most headers are smaller
constexpr std::size_t kept_header_bytes = 16 * 1024;   // after a larger header, a header object frees its memory
constexpr std::size_t small_header_bytes = 64 * 1024;  // up to this size a header takes little memory, whatever its entries

template <class T>
auto& ahead_of(T& x) {
  if constexpr (requires { x.payload; })
    return x.payload.ahead;
  else
    return x.ahead;
}

template <class T>
auto& packings_of(T& x) {
  if constexpr (requires { x.payload; })
    return x.payload.packings;
  else
    return x.packings;
}

// One header object per thread and type, so that a small message allocates nothing. After a large message the object frees its
// memory.
template <class Header>
class scratch {
 public:
  scratch() : header_(object()) {}
  ~scratch() {
    if (bytes_ > kept_header_bytes) header_ = Header{};
  }
  scratch(const scratch&) = delete;
  scratch& operator=(const scratch&) = delete;

  Header& operator*() noexcept { return header_; }
  Header* operator->() noexcept { return &header_; }
  void was(std::size_t bytes) noexcept { bytes_ = bytes; }

 private:
  static Header& object() {
    thread_local Header header;
    return header;
  }

  Header& header_;
  std::size_t bytes_ = kept_header_bytes + 1;  // until was() is called
};

// Returns an upper limit for the bytes of the current message that are written already. The limit may be too high, because the
// buffer of a connection may also hold short messages that have not left yet.
std::uint64_t bytes_before(caf::serializer& sink) {
  auto* binary = dynamic_cast<caf::binary_serializer*>(&sink);
  return binary != nullptr ? binary->buf().size() : 0;
}

// Grows the buffer by at least half. If the buffer grew by one message at a time, every message would move all messages before
// it.
void reserve_more(std::vector<char>& buffer, std::size_t bytes) {
  const auto needed = buffer.size() + bytes;
  if (needed > buffer.capacity()) buffer.reserve(std::max(needed, buffer.capacity() + buffer.capacity() / 2));
}

template <class Header>
caf::error write_header(caf::serializer& sink, const Header& header, std::size_t header_bytes, std::uint64_t payload) {
  std::array<unsigned char, stack_bytes> on_stack;
  std::unique_ptr<unsigned char[]> on_heap;
  std::size_t bytes = prefix_bytes + header_bytes;
  unsigned char* buffer = on_stack.data();
  if (bytes > on_stack.size()) {
    on_heap = std::make_unique_for_overwrite<unsigned char[]>(bytes);
    buffer = on_heap.get();
  }
  auto short_bytes = static_cast<std::uint32_t>(header_bytes);
  std::memcpy(buffer, &short_bytes, sizeof short_bytes);
  std::memcpy(buffer + sizeof short_bytes, &payload, sizeof payload);
  header.SerializeWithCachedSizesToArray(buffer + prefix_bytes);
  if (payload > 4096) {
    // otherwise the buffer would grow in steps and copy the elements each time
    if (auto* binary = dynamic_cast<caf::binary_serializer*>(&sink)) reserve_more(binary->buf(), bytes + payload + 64);
  }
  return sink.apply_raw(bytes, buffer);
}

// Prints the error, because CAF drops the error and the receiver only sees that something is missing.
void report_unwritten(const caf::error& why) noexcept {
  try {
    std::fprintf(stderr, "troupe: a message could not be written: %s\n", to_exception(why).what());
  } catch (...) {  // no memory for the text: nothing is printed
  }
}

/// The connection that takes these elements behind the message; null: they have to go within it.
trailing_elements* taking(caf::serializer& sink, const at::Tensor& elements) {
  auto* binary = dynamic_cast<caf::binary_serializer*>(&sink);
  return binary != nullptr ? trailing_elements::taking(binary->buf(), elements.nbytes()) : nullptr;
}

trailing_bytes trailing_of(const at::Tensor& elements) {
  const auto owner = std::make_shared<at::Tensor>(elements);
  return {{static_cast<const char*>(owner->const_data_ptr()), owner->nbytes()}, owner};
}

template <class T>
caf::error write(caf::serializer& sink, const T& x) {
  scratch<header_t<T>> header;
  header->Clear();
  wire_fields::put(*header, x);
  travelling_tensors forms;
  std::uint64_t payload = 0;
  [[maybe_unused]] trailing_elements* behind = nullptr;  // takes the elements of a piece
  if constexpr (has_tensors<T>) {
    if (!tensors_in(x).empty()) {
      payload = describe_tensors(tensors_in(x), *header->mutable_tensors(), forms, packings_of(x));
      payload -= leave_out(ahead_of(x), *header->mutable_tensors(), forms);
      for (const auto& each : forms)
        if (each.defined() && !each.is_cpu())
          return make_error(errc::unsupported_tensor, "a tensor on device " + each.device().str() + " was not offered before");
    }
  } else if constexpr (std::same_as<T, tensor_piece>) {
    if (x.elements.defined()) behind = taking(sink, x.elements);
    if (behind != nullptr)
      header->set_trailing(x.elements.nbytes());
    else if (x.elements.defined())
      payload = forms.emplace_back(x.elements).nbytes();
  }
  std::size_t bytes = header->ByteSizeLong();
  header.was(bytes);
  if (bytes > max_header_bytes || payload > max_payload_bytes) {
    return make_error(errc::unsupported_tensor, "a message of " + std::to_string(bytes) + " bytes and " +
                                                  std::to_string(payload) +
                                                  " of tensors is too large; send it in parts, and large values as tensors");
  }
  const auto before = bytes_before(sink);
  if (before + bytes + payload > longest_message()) {
    return make_error(errc::unsupported_tensor, "a struct of " + std::to_string(bytes + payload) +
                                                  " bytes does not fit: " + std::to_string(before) +
                                                  " bytes of its message are written before it, and a message has at most " +
                                                  std::to_string(longest_message()) + "; send the tensors in several messages");
  }
  if (auto failed = write_header(sink, *header, bytes, payload)) return failed;
  auto failed = write_tensors(forms, sink);
  if constexpr (std::same_as<T, tensor_piece>)
    if (!failed && behind != nullptr) behind->trail(trailing_of(x.elements));
  return failed;
}

// For errors only, because each call builds the name of the type anew.
template <class T>
caf::error malformed(const std::string& why) {
  return make_error(errc::malformed_message, header_t<T>::default_instance().GetTypeName() + ": " + why);
}

template <class T>
caf::error unbelieved(const sender_check& other, sender_check::answer why) {
  const auto name = header_t<T>::default_instance().GetTypeName();
  if (why == sender_check::answer::not_yet)
    return make_error(errc::unknown_peer, name + ": its sender, " + other.who() + ", has not introduced itself yet");
  return make_error(errc::refused, name + ": it says that it is from another node than its sender, " + other.who());
}

template <class T>
caf::error not_its_own(const sender_check& other, const context_id& context) {
  return make_error(errc::refused, header_t<T>::default_instance().GetTypeName() + ": its sender, " + other.who() +
                                     ", has not opened the context " + to_string(context) +
                                     ", and the policy lets its role end only contexts that it opened");
}

/// Whether only the node that opened the context may send messages of this type, or a node whose role may end contexts
/// (sender_check::may_end).
template <class T>
constexpr bool is_of_opener =
  std::same_as<T, release_context> || std::same_as<T, abort_pass> || std::same_as<T, prune> || std::same_as<T, discover>;

/// Whether the message names its true sender. The answer is yes for a message that names no sender, such as a result.
template <class T>
sender_check::answer tells_its_sender(sender_check& other, const T& x) {
  using answer = sender_check::answer;
  const auto certain = [](bool is_so) { return is_so ? answer::yes : answer::no; };
  if constexpr (std::same_as<T, hello>)
    return certain(other.introduces(x.name, x.id));
  else if constexpr (std::same_as<T, welcome>)
    return certain(other.introduces(x.self.name, x.self.id));
  else if constexpr (std::same_as<T, propagate_gradients>)
    return certain(other.is_named(x.from));
  else if constexpr (std::same_as<T, call_request>)
    return other.is(x.payload.message.node);
  else if constexpr (requires {
                       { x.from } -> std::convertible_to<node_id>;
                     })
    return other.is(x.from);
  else
    return answer::yes;
}

/// Reads the header of a struct that begins at `bytes`, with all fields but the tensors. `header_bytes` and `payload`: how long
/// the header and the bytes of the tensors are.
template <class T>
caf::error read_header(const caf::byte* bytes, std::size_t remaining, scratch<header_t<T>>& header, T& x,
                       std::uint32_t& header_bytes, std::uint64_t& payload) {
  if (remaining == 0)
    return malformed<T>("nothing came; the sender could not write it, perhaps because of a tensor that can't travel");
  if (remaining < prefix_bytes) return malformed<T>("cut off after " + std::to_string(remaining) + " bytes");
  std::memcpy(&header_bytes, bytes, sizeof header_bytes);
  std::memcpy(&payload, bytes + sizeof header_bytes, sizeof payload);
  remaining -= prefix_bytes;
  if (header_bytes > remaining || header_bytes > max_header_bytes || payload > remaining - header_bytes) {
    return malformed<T>("claims " + std::to_string(header_bytes) + " and " + std::to_string(payload) + " bytes, has " +
                        std::to_string(remaining));
  }
  static const deep_fields deep(*header_t<T>::descriptor());
  if (!fields_are_within({bytes + prefix_bytes, header_bytes}, deep))
    return malformed<T>("the header is not a protobuf message of this type");
  if (header_bytes > small_header_bytes && !entries_are_few({bytes + prefix_bytes, header_bytes}, *header_t<T>::descriptor()))
    return malformed<T>("the header has more entries than that of any message that a node sends");
  header.was(header_bytes);
  if (!header->ParseFromArray(bytes + prefix_bytes, static_cast<int>(header_bytes)))
    return malformed<T>("the header is not a protobuf message of this type");
  if (const auto* bad = wire_fields::parse(*header, x)) return malformed<T>(bad);
  return caf::none;
}

/// As arriving_tensors::add(), for a piece that was read.
const char* add_piece(arriving_tensors* to, const tensor_piece& x, std::uint64_t trailing,
                      caf::span<const caf::byte> elements) {
  if (to == nullptr) return "this actor system takes no tensors in pieces";
  if (trailing == 0) return to->add(x, elements);
  const auto* place = reading_trailing::current();
  return place != nullptr && place->bytes == trailing ? to->add_trailing(x, *place)
                                                      : "the elements of a piece did not trail it";
}

template <class T>
caf::error read(caf::deserializer& any_source, T& x) {
  auto* source = dynamic_cast<caf::binary_deserializer*>(&any_source);
  if (source == nullptr) return malformed<T>("only CAF's binary format can be read");
  scratch<header_t<T>> header;
  std::uint32_t header_bytes = 0;
  std::uint64_t payload = 0;
  if (auto failed = read_header(source->remainder().data(), source->remaining(), header, x, header_bytes, payload))
    return failed;
  auto* const other = reading_from::current();
  if (other != nullptr)
    if (const auto told = tells_its_sender(*other, x); told != sender_check::answer::yes) return unbelieved<T>(*other, told);
  if constexpr (is_of_opener<T>)
    if (other != nullptr && !other->may_end(x.context)) return not_its_own<T>(*other, x.context);
  std::uint64_t claimed = 0;
  source->skip(prefix_bytes + header_bytes);
  if constexpr (has_tensors<T>) {
    const wire::Tensors& described = header->tensors();
    if (other != nullptr && described.ahead_size() > 0)
      if (const auto told = other->is({described.ahead_from()}); told != sender_check::answer::yes)
        return unbelieved<T>(*other, told);
    if (std::string bad = check_tensors(described, payload, claimed); !bad.empty()) return malformed<T>(bad);
    ahead_of(x) = {};
    if (auto failed = read_tensors(described, *source, tensors_in(x), packings_of(x))) return failed;
  } else if constexpr (std::same_as<T, tensor_piece>) {
    x.elements.reset();
    if (const auto* bad = add_piece(arriving_at(*source), x, header->trailing(), source->remainder().first(payload)))
      return malformed<T>(bad);
  } else if constexpr (std::same_as<T, tensor_offer>) {
    auto* arriving = arriving_at(*source);
    x.read_at_once = arriving != nullptr ? arriving->read_at_once(x) : std::nullopt;
  }
  source->skip(payload - claimed);
  return caf::none;
}

}  // namespace

std::optional<trailing_place> tensor_receiver::place_of_trailing(std::string_view values) const noexcept {
  std::uint64_t trailing = 0;
  try {
    scratch<wire::TensorPiece> header;
    tensor_piece piece;
    std::uint32_t header_bytes = 0;
    std::uint64_t payload = 0;
    const auto* bytes = reinterpret_cast<const caf::byte*>(values.data());
    if (read_header(bytes, values.size(), header, piece, header_bytes, payload)) return std::nullopt;
    if (header->trailing() == 0 || header->trailing() > trailing_elements::most) return std::nullopt;
    trailing = header->trailing();
    auto* const other = reading_from::current();
    if (other != nullptr && tells_its_sender(*other, piece) != sender_check::answer::yes)
      return trailing_place{trailing, {}, {}, 0, "a piece names another sender"};
    return arriving_.place(piece, trailing);
  } catch (const std::exception&) {
    if (trailing == 0) return std::nullopt;
    return trailing_place{trailing, {}, {}, 0, "this node has no memory for the elements of a piece"};
  }
}

caf::error write_message(caf::serializer& sink, wire::any_sent x) noexcept {
  caf::error failed;
  try {
    failed = std::visit([&](const auto* one) { return write(sink, *one); }, x);
  } catch (const std::exception& caught) {
    failed = make_error(caught);
  } catch (...) {
    failed = make_error(errc::function_failed, "an exception of unknown type");
  }
  if (failed) report_unwritten(failed);
  return failed;
}

caf::error read_message(caf::deserializer& source, wire::any_read x) noexcept {
  caf::error failed;
  try {
    failed = std::visit([&](auto* one) { return read(source, *one); }, x);
  } catch (const std::exception& caught) {
    failed = make_error(errc::malformed_message, caught.what());
  } catch (...) {
    failed = make_error(errc::malformed_message, "a message could not be read");
  }
  if (failed) keep_read_error(failed);
  return failed;
}

}  // namespace troupe
