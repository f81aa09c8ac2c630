// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/remote_object.hpp>

#include <exception>
#include <utility>

#include <troupe/actors/context.hpp>
#include <troupe/actors/node_access.hpp>
#include <troupe/actors/objects/object_store.hpp>
#include <troupe/actors/support/call_scope.hpp>

namespace troupe {

remote_object::remote_object(peer where, object_id id)
    : where_(std::move(where)), id_(id), tether_(nodes::visit(link_of(where_))->services().objects.tether()) {
  tether_->hold(id_);
}

remote_object::~remote_object() {
  tether_->let_go(id_);
  try {
    auto bounds = support::call_scope::current_bounds();
    bounds.until_ns = 0;  // the drop joins no context and has a deadline of its own
    const support::call_scope outside({}, {}, {}, {}, bounds);
    ask(requests::drop{link_of(where_).id()});
  } catch (const std::exception&) {
    // The drop could not be sent: the object lives until its node stops or drops the objects of this node.
  }
}

future<call_reply> remote_object::ask(request what, std::vector<at::Tensor> tensors) const {
  return node_access::ask(where_, std::move(what), std::move(tensors), {}, id_);
}

void require_current(const context& pass, const char* who) {
  if (context::current() != pass.id())
    throw error(errc::misuse, std::string(who) + ": " + to_string(pass.id()) +
                                " is not the context that is open on this thread; call it in the scope of that context");
}

}  // namespace troupe
