// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/objects/plain_pickle.hpp>

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include <c10/util/Exception.h>

namespace troupe::objects {

namespace {

/// Follows the operations of a pickle: of each value it keeps only how deep other values are nested in it.
class walk {
 public:
  explicit walk(std::string_view bytes) : left_(bytes) {}

  void run() {
    while (!left_.empty())
      if (const char operation = left_.front(); left_.remove_prefix(1), operation == '.') {
        TORCH_CHECK(stack_.size() == 1 && marks_.empty(), "its pickle ends with ", stack_.size(), " values, expected one");
        return;
      } else {
        do_one(operation);
      }
    TORCH_CHECK(false, "its pickle has no end");
  }

 private:
  struct value {
    int depth = 0;         // 0: no values are in it
    bool is_open = false;  // an empty list or dictionary that takes values
  };

  void do_one(char operation) {
    switch (static_cast<unsigned char>(operation)) {
      case 0x80:  // PROTO
        return skip(1);
      case 'N':   // NONE
      case 0x88:  // NEWTRUE
      case 0x89:  // NEWFALSE
        return push({});
      case 'K':  // BININT1
        return push_number(1);
      case 'M':  // BININT2
        return push_number(2);
      case 'J':  // BININT
        return push_number(4);
      case 'G':  // BINFLOAT
        return push_number(8);
      case 0x8A:  // LONG1: a number of so many bytes
        return push_number(number(1));
      case 'X':  // BINUNICODE
        return push_number(number(4));
      case 'c':  // GLOBAL: two lines
        skip_line();
        skip_line();
        return push({});
      case ')':  // EMPTY_TUPLE
        return push({1});
      case ']':  // EMPTY_LIST
      case '}':  // EMPTY_DICT
        return push({1, true});
      case '(':  // MARK
        return marks_.push_back(stack_.size());
      case 't':  // TUPLE
        return push({take_marked() + 1});
      case 0x85:  // TUPLE1
      case 0x86:
      case 0x87:
        return push({take(static_cast<std::size_t>(static_cast<unsigned char>(operation) - 0x84)) + 1});
      case 'a':  // APPEND
        return add(take(1));
      case 's':  // SETITEM
        return add(take(2));
      case 'e':  // APPENDS
      case 'u':  // SETITEMS
        return add(take_marked());
      case 'Q':  // BINPERSID: a record of the archive
        take(1);
        return push({});
      case 'R':   // REDUCE
      case 0x81:  // NEWOBJ
      case 'b':   // BUILD
        return push({take(2)});
      case 'q':  // BINPUT
        return keep(number(1));
      case 'r':  // LONG_BINPUT
        return keep(number(4));
      case 'h':  // BINGET
        return fetch(number(1));
      case 'j':  // LONG_BINGET
        return fetch(number(4));
      default:
        TORCH_CHECK(false, "its pickle has operation ", static_cast<int>(static_cast<unsigned char>(operation)),
                    ", which no checkpoint needs");
    }
  }

  void skip(std::size_t bytes) {
    TORCH_CHECK(bytes <= left_.size(), "its pickle claims ", bytes, " bytes where ", left_.size(), " follow");
    left_.remove_prefix(bytes);
  }
  void skip_line() {
    const auto end = left_.find('\n');
    TORCH_CHECK(end != std::string_view::npos, "its pickle has a line without an end");
    left_.remove_prefix(end + 1);
  }
  std::size_t number(std::size_t bytes) {
    const auto at = left_;
    skip(bytes);
    std::size_t result = 0;
    for (std::size_t i = bytes; i > 0; --i) result = result << 8 | static_cast<unsigned char>(at[i - 1]);
    return result;
  }

  void push(value what) {
    TORCH_CHECK(what.depth <= most_nested, "its pickle nests values more than ", most_nested, " deep");
    stack_.push_back(what);
  }
  void push_number(std::size_t bytes) {
    skip(bytes);
    push({});
  }
  /// Takes the uppermost values. Returns how deep the deepest one is.
  int take(std::size_t count) {
    TORCH_CHECK(stack_.size() - (marks_.empty() ? 0 : marks_.back()) >= count, "its pickle takes a value that is not there");
    int result = 0;
    for (; count > 0; --count) {
      result = std::max(result, stack_.back().depth);
      stack_.pop_back();
    }
    return result;
  }
  int take_marked() {
    TORCH_CHECK(!marks_.empty(), "its pickle takes values that are not there");
    const auto result = take(stack_.size() - marks_.back());
    marks_.pop_back();
    return result;
  }
  void add(int depth) {
    TORCH_CHECK(stack_.size() > (marks_.empty() ? 0 : marks_.back()) && stack_.back().is_open,
                "its pickle adds a value to what is no new list");
    const auto deeper = std::max(stack_.back().depth, depth + 1);
    stack_.pop_back();
    push({deeper, true});
  }
  void keep(std::size_t number) {
    TORCH_CHECK(number == kept_.size() && !stack_.empty(), "its pickle keeps a value under the number ", number, ", expected ",
                kept_.size());
    kept_.push_back(stack_.back());
  }
  void fetch(std::size_t number) {
    TORCH_CHECK(number < kept_.size() && !kept_[number].is_open, "its pickle fetches a value that can't be fetched");
    push(kept_[number]);
  }

  std::string_view left_;
  std::vector<value> stack_;
  std::vector<std::size_t> marks_;  // sizes of the stack
  std::vector<value> kept_;
};

}  // namespace

void check_plain_pickle(std::string_view bytes) {
  TORCH_CHECK(bytes.size() <= most_pickle_bytes, "its pickle has ", bytes.size(), " bytes, expected at most ",
              most_pickle_bytes);
  walk(bytes).run();
}

}  // namespace troupe::objects
