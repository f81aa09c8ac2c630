// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/messages/errors.hpp>
#include <troupe/messages/inspect.hpp>
#include <troupe/messages/tensor_rules.hpp>

namespace troupe {

namespace {

constexpr std::size_t max_shown = 8;        // entries shown of a list
constexpr std::size_t max_characters = 80;  // characters shown of a text

// Builds "name(field=value, ...)".
class printer {
 public:
  explicit printer(const char* name) : text_(std::string{name} + '(') {}

  template <class T>
  printer& field(const char* name, const T& x) {
    text_ += (text_.back() == '(' ? "" : ", ") + std::string{name} + '=';
    add(x);
    return *this;
  }

  std::string done() { return std::move(text_) + ')'; }

 private:
  void add(bool x) { text_ += x ? "true" : "false"; }
  void add(std::int64_t x) { text_ += std::to_string(x); }
  void add(std::uint64_t x) { text_ += std::to_string(x); }
  void add(std::uint32_t x) { text_ += std::to_string(x); }
  void add(std::uint16_t x) { text_ += std::to_string(x); }
  void add(double x) { text_ += std::to_string(x); }
  void add(const char* x) { text_ += x; }
  void add(pass_number x) { text_ += std::to_string(x.value); }
  void add(node_id x) { text_ += to_string(x); }
  void add(const context_id& x) { text_ += to_string(x); }
  void add(const message_id& x) { text_ += to_string(x); }
  void add(const object_id& x) { text_ += to_string(x); }
  void add(const at::Tensor& x) { text_ += describe(x); }
  void add(const c10::Device& x) { text_ += x.str(); }
  void add(const member& x) { text_ += to_string(x); }
  void add(const autograd_message& x) { text_ += to_string(x); }

  void add(const std::string& x) {
    text_ += '"';
    for (std::size_t i = 0; i < x.size() && i < max_characters; ++i) {
      auto c = static_cast<unsigned char>(x[i]);
      text_ += c < 0x20 || c == 0x7f ? '.' : x[i];
    }
    text_ += x.size() > max_characters ? "...\"" : "\"";
  }

  template <class T>
  void add(const std::vector<T>& xs) {
    text_ += '[';
    for (std::size_t i = 0; i < xs.size() && i < max_shown; ++i) {
      text_ += i == 0 ? "" : ", ";
      add(static_cast<const T&>(xs[i]));
    }
    text_ += xs.size() > max_shown ? ", ... " + std::to_string(xs.size()) + " in all]" : "]";
  }

  void add(const attributes& xs) {
    text_ += '{';
    std::size_t shown = 0;
    for (const auto& [name, x] : xs) {
      if (shown++ == max_shown) {
        text_ += ", ... " + std::to_string(xs.size()) + " in all";
        break;
      }
      text_ += (shown == 1 ? "" : ", ") + name + ": ";
      std::visit([this](const auto& value) { add(value); }, x.value);
    }
    text_ += '}';
  }

  void add(const purse& x) {
    text_ += printer{"purse"}.field("weight", x.weight).field("begun", x.begun).field("settled", x.settled).done();
  }

  std::string text_;
};

template <class T>
printer of_pass(const char* name, const T& x) {
  printer text{name};
  text.field("context", x.context).field("pass", x.pass);
  return text;
}

template <class T>
printer of_address(const char* name, const T& x) {
  printer text{name};
  text.field("name", x.name).field("id", x.id).field("host", x.host).field("port", x.port);
  return text;
}

std::string show(const autograd_message& x) {
  return printer{"autograd_message"}
    .field("context", x.context)
    .field("message", x.message)
    .field("tensors", x.tensors)
    .field("requires_grad", x.requires_grad)
    .field("devices", x.devices)
    .field("place", x.place)
    .done();
}
std::string show(const hello& x) {
  return of_address("hello", x).field("protocol", x.protocol).field("members", x.members).done();
}
std::string show(const member& x) { return of_address("member", x).done(); }
std::string show(const std::vector<member>& x) { return printer{"members"}.field("list", x).done(); }
std::string show(const welcome& x) { return printer{"welcome"}.field("self", x.self).field("members", x.members).done(); }
std::string show(const heartbeat& x) { return printer{"heartbeat"}.field("from", x.from).field("sent_ns", x.sent_ns).done(); }
std::string show(const heartbeat_seen& x) {
  return printer{"heartbeat_seen"}.field("from", x.from).field("sent_ns", x.sent_ns).field("answered_ns", x.answered_ns).done();
}
std::string show(const farewell& x) { return printer{"farewell"}.field("from", x.from).field("reason", x.reason).done(); }
std::string show(const call_request& x) {
  return printer{"call_request"}
    .field("function", x.function)
    .field("target", x.target)
    .field("values", x.values)
    .field("payload", x.payload)
    .field("deadline_ns", x.deadline_ns)
    .field("span", x.span)
    .field("completed", x.completed)
    .field("failed", x.failed)
    .field("calls", x.calls)
    .done();
}
std::string show(const call_result& x) {
  return printer{"call_result"}
    .field("values", x.values)
    .field("payload", x.payload)
    .field("participants", x.participants)
    .field("spans", x.spans)
    .done();
}
std::string show(const propagate_gradients& x) {
  return of_pass("propagate_gradients", x)
    .field("message", x.message)
    .field("gradients", x.gradients)
    .field("carried", x.carried)
    .field("keep_graph", x.keep_graph)
    .field("create_graph", x.create_graph)
    .field("from", x.from)
    .field("joint", x.joint)
    .field("requires_grad", x.requires_grad)
    .field("place", x.place)
    .done();
}
std::string show(const participant_quiet& x) {
  return of_pass("participant_quiet", x).field("from", x.from).field("carried", x.carried).done();
}
std::string show(const participant_failed& x) {
  return of_pass("participant_failed", x)
    .field("from", x.from)
    .field("code", to_text(static_cast<errc>(x.code)))
    .field("text", x.text)
    .done();
}
std::string show(const discover& x) {
  return of_pass("discover", x)
    .field("sends", x.sends)
    .field("keep_graph", x.keep_graph)
    .field("create_graph", x.create_graph)
    .done();
}
std::string show(const discovered& x) { return of_pass("discovered", x).field("recvs", x.recvs).done(); }
std::string show(const prune& x) {
  return of_pass("prune", x)
    .field("live", x.live)
    .field("carried", x.carried)
    .field("keep_graph", x.keep_graph)
    .field("create_graph", x.create_graph)
    .done();
}
std::string show(const abort_pass& x) { return of_pass("abort_pass", x).done(); }
std::string show(const pass_aborted& x) {
  return of_pass("pass_aborted", x).field("from", x.from).field("sent_to", x.sent_to).done();
}
std::string show(const context_joined& x) {
  return printer{"context_joined"}.field("context", x.context).field("from", x.from).done();
}
std::string show(const release_context& x) { return printer{"release_context"}.field("context", x.context).done(); }
std::string show(const context_released& x) {
  return printer{"context_released"}.field("context", x.context).field("from", x.from).done();
}
std::string show(const node_status& x) {
  return printer{"node_status"}
    .field("self", x.self)
    .field("contexts", x.contexts)
    .field("passes_running", x.passes_running)
    .field("pass_parts", x.pass_parts)
    .field("calls_waiting", x.calls_waiting)
    .field("calls_running", x.calls_running)
    .field("peers", static_cast<std::uint64_t>(x.peers.size()))
    .done();
}
std::string show(const tensor_piece& x) {
  return printer{"tensor_piece"}
    .field("from", x.from)
    .field("transfer", x.transfer)
    .field("total", x.total)
    .field("offset", x.offset)
    .done();
}
std::string show(const request_mark& x) {
  return printer{"request_mark"}.field("from", x.from).field("process", x.process).done();
}
std::string show(const memory_mark&) { return printer{"memory_mark"}.done(); }  // the mark is a secret of two nodes
std::string show(const tensor_offer& x) {
  return printer{"tensor_offer"}
    .field("from", x.from)
    .field("transfer", x.transfer)
    .field("total", x.total)
    .field("offset", x.offset)
    .field("bytes", x.bytes)
    .field("process", x.process)
    .done();
}

}  // namespace

template <travelling T>
std::string to_string(const T& x) {
  return show(x);
}

template std::string to_string(const autograd_message&);
template std::string to_string(const hello&);
template std::string to_string(const member&);
template std::string to_string(const std::vector<member>&);
template std::string to_string(const welcome&);
template std::string to_string(const heartbeat&);
template std::string to_string(const heartbeat_seen&);
template std::string to_string(const farewell&);
template std::string to_string(const call_request&);
template std::string to_string(const call_result&);
template std::string to_string(const propagate_gradients&);
template std::string to_string(const participant_quiet&);
template std::string to_string(const participant_failed&);
template std::string to_string(const discover&);
template std::string to_string(const discovered&);
template std::string to_string(const prune&);
template std::string to_string(const abort_pass&);
template std::string to_string(const pass_aborted&);
template std::string to_string(const context_joined&);
template std::string to_string(const release_context&);
template std::string to_string(const context_released&);
template std::string to_string(const node_status&);
template std::string to_string(const tensor_piece&);
template std::string to_string(const request_mark&);
template std::string to_string(const memory_mark&);
template std::string to_string(const tensor_offer&);

}  // namespace troupe
