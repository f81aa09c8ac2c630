// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/engine/roots.hpp>

#include <ATen/ATen.h>
#include <c10/util/Exception.h>
#include <torch/csrc/autograd/variable.h>

namespace troupe::engine {

namespace {

// libtorch's gradient_edge(), without its three looks for a view where the tensor is none.
torch::autograd::Edge edge_of(const at::Tensor& root) {
  const auto* meta = torch::autograd::impl::get_autograd_meta(root);
  if (meta == nullptr || meta->is_view_ || meta->grad_fn_ == nullptr) return torch::autograd::impl::gradient_edge(root);
  return {meta->grad_fn_, meta->output_nr_};
}

}  // namespace

torch::autograd::edge_list root_edges(const std::vector<at::Tensor>& roots) {
  torch::autograd::edge_list edges;
  edges.reserve(roots.size());
  for (std::size_t i = 0; i < roots.size(); ++i) {
    TORCH_CHECK(roots[i].defined(), "troupe: root ", i, " of the backward pass is an undefined tensor");
    auto edge = edge_of(roots[i]);
    TORCH_CHECK(edge.function != nullptr, "troupe: root ", i, " of the backward pass (shape ", roots[i].sizes(),
                ") does not require grad and was not computed from a tensor that does");
    edges.push_back(std::move(edge));
  }
  return edges;
}

torch::autograd::variable_list root_gradients(const std::vector<at::Tensor>& roots, const std::vector<at::Tensor>& gradients) {
  TORCH_CHECK(gradients.empty() || gradients.size() == roots.size(), "troupe: ", roots.size(), " roots, but ", gradients.size(),
              " gradients; give one for each, or none for scalar roots");
  torch::autograd::variable_list all;
  all.reserve(roots.size());
  for (std::size_t i = 0; i < roots.size(); ++i) {
    if (!gradients.empty() && gradients[i].defined()) {
      TORCH_CHECK(gradients[i].is_complex() == roots[i].is_complex(), "troupe: root ", i, " is ", roots[i].scalar_type(),
                  " but its gradient is ", gradients[i].scalar_type(), "; either both are complex or none is");
      all.push_back(gradients[i]);
      continue;
    }
    TORCH_CHECK(roots[i].sym_numel() == 1, "troupe: root ", i, " has shape ", roots[i].sizes(),
                " and no gradient; only a scalar root can go without one");
    TORCH_CHECK(!roots[i].is_complex(), "troupe: root ", i, " is ", roots[i].scalar_type(),
                " and no gradient is given; only a real root can go without one");
    all.push_back(at::ones_like(roots[i], at::MemoryFormat::Contiguous));
  }
  return all;
}

}  // namespace troupe::engine
