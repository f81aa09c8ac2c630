// SPDX-License-Identifier: BSD-3-Clause
// Tests: tests/actors/remote_module_test.cpp, tests/actors/optimizer_test.cpp
#pragma once

#include <troupe/actors/function_table.hpp>
#include <troupe/messages/requests.hpp>

namespace troupe::nodes {

struct node_services;

/// Runs the request of a call, and returns the answer. Throws the exceptions of the user's function, and troupe::error.
call_reply serve_request(node_services& here, const request& what, call_arguments& arguments);

// There is one function for each type of request. The functions for objects and optimizers are declared only in
// object_requests.cpp.

// checkpoint_requests.cpp
call_reply serve(node_services& here, call_arguments& arguments, const requests::expect_disk_space& what);
call_reply serve(node_services& here, call_arguments& arguments, const requests::save& what);
call_reply serve(node_services& here, call_arguments& arguments, const requests::remove& what);
call_reply serve(node_services& here, call_arguments& arguments, const requests::snapshot& what);
call_reply serve(node_services& here, call_arguments& arguments, const requests::piece& what);
call_reply serve(node_services& here, call_arguments& arguments, const requests::receive& what);
call_reply serve(node_services& here, call_arguments& arguments, const requests::load& what);
call_reply serve(node_services& here, call_arguments& arguments, const requests::apply& what);
call_reply serve(node_services& here, call_arguments& arguments, const requests::discard& what);
// trace_requests.cpp
call_reply serve(node_services& here, call_arguments& arguments, const requests::trace& what);
call_reply serve(node_services& here, call_arguments& arguments, const requests::spans& what);

}  // namespace troupe::nodes
