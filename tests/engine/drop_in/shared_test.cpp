// SPDX-License-Identifier: BSD-3-Clause
#include <dlfcn.h>

#include <cstdlib>

#include <ATen/ATen.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/function.h>
#include <boost/test/unit_test.hpp>

BOOST_AUTO_TEST_SUITE(drop_in_shared_library)

namespace {

bool passes_are_troupes() {
  bool inside = false;
  const auto x = at::ones({1}).requires_grad_();
  x.register_hook([&](const at::Tensor&) { inside = torch::autograd::get_current_node()->name() == "troupe::pass"; });
  torch::autograd::backward({x * 2});
  BOOST_TEST(x.grad().item<float>() == 2);
  return inside;
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_program_installs_the_engine_by_its_c_names) {
  void* const library = dlopen(std::getenv("TROUPE_SHARED"), RTLD_NOW | RTLD_LOCAL);
  BOOST_TEST_REQUIRE(library != nullptr, dlerror());
  const auto call = [&](const char* name) { return reinterpret_cast<int (*)()>(dlsym(library, name))(); };
  BOOST_TEST(!passes_are_troupes());
  BOOST_TEST(call("troupe_install_engine") == 0);
  BOOST_TEST(passes_are_troupes());
  BOOST_TEST(call("troupe_uninstall_engine") == 0);
  BOOST_TEST(!passes_are_troupes());
}

BOOST_AUTO_TEST_SUITE_END()
