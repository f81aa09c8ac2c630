// SPDX-License-Identifier: BSD-3-Clause
#include <google/protobuf/text_format.h>

#include <troupe/messages/errors.hpp>
#include <troupe/messages/inspect.hpp>
#include <troupe/messages/tensor_rules.hpp>
#include <troupe/messages/wire.hpp>

namespace troupe {

namespace {

constexpr int max_shown = 4;        // entries shown of a list
constexpr int max_characters = 80;  // characters shown of a text

void hide(google::protobuf::Message&) {}
// Removes the fields with secrets, which only the two nodes may know.
void hide(wire::MemoryMark& header) { header.clear_words(); }
void hide(wire::TensorOffer& header) {
  header.clear_address();
  header.clear_mark();
  header.clear_allocation();
  header.clear_event();
}

/// Returns notes on the struct: parts that its header does not have (tensors), or has only as a number (error codes).
template <class T>
std::string notes_on(const T& x) {
  if constexpr (std::same_as<T, participant_failed>) {
    return std::string("# ") + to_text(static_cast<errc>(x.code)) + ' ';
  } else if constexpr (has_tensors<T>) {
    const auto& tensors = tensors_in(x);
    std::string text = "# tensors: [";
    for (std::size_t i = 0; i < tensors.size() && i < max_shown; ++i) text += (i == 0 ? "" : ", ") + describe(tensors[i]);
    return text + (tensors.size() > max_shown ? ", ...], " + std::to_string(tensors.size()) + " in all " : "] ");
  } else {
    return {};
  }
}

/// Removes all but a few entries of each list, and adds to `notes` how many entries the list had.
void cut_lists(google::protobuf::Message& header, std::string& notes) {
  const auto* reflection = header.GetReflection();
  std::vector<const google::protobuf::FieldDescriptor*> fields;
  reflection->ListFields(header, &fields);
  for (const auto* field : fields) {
    const bool nested = field->cpp_type() == google::protobuf::FieldDescriptor::CPPTYPE_MESSAGE;
    if (!field->is_repeated()) {
      if (nested) cut_lists(*reflection->MutableMessage(&header, field), notes);
      continue;
    }
    const int entries = reflection->FieldSize(header, field);
    for (int left = entries; left > max_shown; --left) reflection->RemoveLast(&header, field);
    if (entries > max_shown) notes += "# " + field->name() + ": " + std::to_string(entries) + " in all ";
    for (int i = 0; nested && i < reflection->FieldSize(header, field); ++i)
      cut_lists(*reflection->MutableRepeatedMessage(&header, field, i), notes);
  }
}

template <class T>
std::string text_of_one(const T& x) {
  header_t<T> header;
  wire_fields::put(header, x);
  hide(header);
  std::string notes = notes_on(x);
  cut_lists(header, notes);
  google::protobuf::TextFormat::Printer printer;
  printer.SetSingleLineMode(true);
  printer.SetUseShortRepeatedPrimitives(true);
  printer.SetTruncateStringFieldLongerThan(max_characters);
  std::string text;
  printer.PrintToString(header, &text);
  return header.GetDescriptor()->name() + '(' + text + notes + ')';
}

}  // namespace

std::string text_of(wire::any_sent x) {
  return std::visit([](const auto* one) { return text_of_one(*one); }, x);
}

}  // namespace troupe
