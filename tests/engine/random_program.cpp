// SPDX-License-Identifier: BSD-3-Clause
#include "engine/random_program.hpp"

#include <algorithm>
#include <random>

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>
#include <c10/util/Exception.h>
#include <torch/csrc/autograd/custom_function.h>

namespace troupe::test {

namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// The second output may be unused, so that an undefined gradient comes back.
struct product_and_sum final : torch::autograd::Function<product_and_sum> {
  static variable_list forward(AutogradContext* context, const at::Tensor& a, const at::Tensor& b) {
    context->save_for_backward({a, b});
    context->set_materialize_grads(false);
    return {a * b, a + b};
  }
  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const auto saved = context->get_saved_variables();
    variable_list results(2);
    for (std::size_t i = 0; i < 2; ++i) {
      results[i] = gradients[0].defined() ? gradients[0] * saved[1 - i] : at::Tensor();
      if (gradients[1].defined()) results[i] = results[i].defined() ? results[i] + gradients[1] : gradients[1];
    }
    return results;
  }
};

// Gives the first input a gradient of one element, which the engine expands, or no gradient.
struct lazy final : torch::autograd::Function<lazy> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& a, bool defined) {
    context->saved_data["defined"] = defined;
    return a * 3;
  }
  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const bool defined = context->saved_data["defined"].toBool();
    return {defined && gradients[0].defined() ? gradients[0].sum().expand_as(gradients[0]) : at::Tensor(), at::Tensor()};
  }
};

// Fails in the pass: by an exception, or by an output of a wrong shape.
struct failing final : torch::autograd::Function<failing> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& a, bool shape) {
    context->saved_data["shape"] = shape;
    return a + 1;
  }
  static variable_list backward(AutogradContext* context, const variable_list&) {
    if (context->saved_data["shape"].toBool()) return {at::ones({7, 5, 3}), at::Tensor()};
    throw std::domain_error("a function of the test fails");
  }
};

class author {
 public:
  author(std::uint64_t seed, const program_options& options)
      : options_(options), random_(seed), generator_(at::detail::createCPUGenerator(seed)) {}

  void write(random_program& program);

 private:
  struct value {
    at::Tensor tensor;
    int side;
  };

  std::size_t below(std::size_t n) { return std::uniform_int_distribution<std::size_t>(0, n - 1)(random_); }
  bool once_in(std::size_t n) { return below(n) == 0; }
  at::Tensor normal(at::IntArrayRef shape, at::ScalarType type) {
    const auto real = at::isComplexType(type) ? type : at::kDouble;
    return at::randn(shape, generator_, at::TensorOptions(real)).to(type);
  }

  at::Tensor leaf();
  std::size_t pick_index();
  at::Tensor pick();
  at::Tensor like(const at::Tensor& a);
  at::Tensor fit(const at::Tensor& b, const at::Tensor& a);
  std::int64_t dimension(const at::Tensor& a) { return static_cast<std::int64_t>(below(static_cast<std::size_t>(a.dim()))); }
  at::Tensor rows(const at::Tensor& a, std::int64_t count);
  void keep(const at::Tensor& a);
  void step();
  void cross_over();
  at::Tensor pointwise(const at::Tensor& a);
  at::Tensor shaped(const at::Tensor& a);
  at::Tensor reduced(const at::Tensor& a);
  at::Tensor joined(const at::Tensor& a);
  at::Tensor layered(const at::Tensor& a);
  at::Tensor in_place(const at::Tensor& a);
  at::Tensor unusual(const at::Tensor& a);
  at::Tensor custom(const at::Tensor& a);
  at::Tensor noted(const char* feature, at::Tensor made) {
    ++features_[feature];
    return made;
  }
  at::Tensor root_gradient(const at::Tensor& root);

  const program_options& options_;
  std::mt19937_64 random_;
  at::Generator generator_;
  std::vector<value> values_;
  std::vector<at::Tensor> leaves_;
  std::map<std::string, std::size_t> features_;
  int side_ = 0;
};

at::Tensor author::leaf() {
  static constexpr std::int64_t lengths[] = {1, 2, 3, 4, 6};
  at::ScalarType type = at::kFloat;
  if (options_.unusual && once_in(4)) {
    static constexpr at::ScalarType types[] = {at::kDouble, at::kDouble, at::kHalf, at::kBFloat16, at::kComplexFloat};
    type = types[below(5)];
  }
  at::Tensor made = normal({lengths[below(5)], lengths[below(5)]}, type);
  if (once_in(5)) made = made.t();  // a leaf whose gradient must have the leaf's strides
  return made.detach().requires_grad_();
}

std::size_t author::pick_index() {
  // Recent values are more likely, so that graphs become deep.
  return once_in(2) ? below(values_.size()) : values_.size() - 1 - below(std::min<std::size_t>(values_.size(), 4));
}

at::Tensor author::pick() {
  for (int tries = 0; tries < 50; ++tries) {
    const value& found = values_[pick_index()];
    if (found.side == side_) return found.tensor;
  }
  return leaves_[static_cast<std::size_t>(side_)];
}

at::Tensor author::like(const at::Tensor& a) {
  for (int tries = 0; tries < 20; ++tries) {
    const at::Tensor b = pick();
    if (b.sizes() == a.sizes() && b.scalar_type() == a.scalar_type()) return b;
  }
  return a;
}

at::Tensor author::fit(const at::Tensor& b, const at::Tensor& a) {
  if (at::is_expandable_to(b.sizes(), a.sizes())) {
    features_["broadcast"] += b.sizes() == a.sizes() ? 0 : 1;
    return b;
  }
  ++features_["broadcast"];
  return once_in(2) ? b.sum() : b.mean();
}

at::Tensor author::rows(const at::Tensor& a, std::int64_t count) {
  std::vector<std::int64_t> index;
  for (std::int64_t i = 0; i < count; ++i)
    index.push_back(static_cast<std::int64_t>(below(static_cast<std::size_t>(a.size(0)))));
  return at::tensor(index, at::kLong);
}

void author::keep(const at::Tensor& a) {
  if (a.defined() && a.requires_grad() && a.numel() > 0 && a.numel() <= 256)
    values_.push_back({a.dim() == 0 || a.dim() > 3 ? a.reshape({-1, 1}) : a, side_});
}

at::Tensor author::pointwise(const at::Tensor& a) {
  switch (below(14)) {
    case 0:
      return a + fit(pick(), a);
    case 1:
      return fit(pick(), a) - a;
    case 2:
      return a * fit(pick(), a);
    case 3:
      return a / (fit(pick(), a).pow(2) + 1);
    case 4:
      return a.tanh();
    case 5:
      return a.sigmoid();
    case 6:
      return a.relu();
    case 7:
      return a.clamp(-2, 2).exp();
    case 8:
      return a * a;
    case 9:
      return at::where(a > 0, a, fit(pick(), a));
    case 10:
      return a.masked_fill(a < 0, 0.5);
    case 11:
      return at::addcmul(a, fit(pick(), a), like(a), 0.5);
    case 12:
      return at::lerp(a, like(a), 0.3);
    default:
      return at::gelu(a) + a.pow(3);
  }
}

at::Tensor author::shaped(const at::Tensor& a) {
  const std::int64_t at = dimension(a);
  switch (below(14)) {
    case 0:
      return a.transpose(0, -1);
    case 1:
      return a.reshape({-1, 1});
    case 2:
      return a.narrow(at, 0, (a.size(at) + 1) / 2);
    case 3:
      return a.select(at, a.size(at) - 1).unsqueeze(0);
    case 4:
      return a.unsqueeze(0).expand({2, -1, -1}).select(0, 1) + a;
    case 5:
      return a.flip({at});
    case 6:
      return a.roll(1, at);
    case 7:
      return at::constant_pad_nd(a, {1, 0}, 0.25);
    case 8:
      return a.index_select(0, rows(a, 3));
    case 9:
      return a.contiguous().view({-1}).unsqueeze(1);
    case 10:
      return a.chunk(2, at).front();
    case 11:
      return a.diagonal().unsqueeze(0);
    case 12:
      return a.tril();
    default:
      return a.unsqueeze(at).squeeze(at).clone();
  }
}

at::Tensor author::reduced(const at::Tensor& a) {
  const std::int64_t at = dimension(a);
  switch (below(10)) {
    case 0:
      return a.sum(at, true);
    case 1:
      return a.mean(at, true);
    case 2:
      return a.sum();
    case 3:
      return std::get<0>(a.max(at, true));
    case 4:
      return a.cumsum(at);
    case 5:
      return a.pow(2).sum(at, true).add(1).sqrt();
    case 6:
      return std::get<0>(a.sort(at));
    case 7:
      return std::get<0>(a.topk(1, at));
    case 8:
      return a.var(at, false, true);
    default:
      return a.logsumexp(at, true);
  }
}

at::Tensor author::joined(const at::Tensor& a) {
  const at::Tensor b = like(a);
  switch (below(6)) {
    case 0:
      return at::cat({a, b, a}, 0);
    case 1:
      return at::stack({a, b}).sum(0);
    case 2: {
      const auto parts = a.unbind(0);
      return (parts.front() * parts.back()).unsqueeze(0);
    }
    case 3:
      return at::gather(a, 0, at::zeros_like(a, at::kLong));
    case 4: {
      const auto parts = at::cat({a, b}, 0).split(1, 0);
      keep(parts[0]);
      keep(parts[1]);
      return parts.back() * 2;
    }
    default:
      return at::einsum("ij,ij->i", {a, b}).unsqueeze(1);
  }
}

at::Tensor author::layered(const at::Tensor& a) {
  switch (below(8)) {
    case 0:
      return at::mm(a, like(a).t());
    case 1:
      return at::softmax(a, -1);
    case 2:
      return at::log_softmax(a, -1);
    case 3:
      return at::layer_norm(a, {a.size(-1)});
    case 4:
      return at::addmm(a, a, at::mm(a.t(), a));
    case 5:
      return at::bmm(a.unsqueeze(0), like(a).t().unsqueeze(0)).squeeze(0);
    case 6:
      return at::conv1d(a.unsqueeze(1), a.narrow(0, 0, 1).unsqueeze(1).slice(2, 0, 1)).squeeze(1);
    default:
      return at::linear(a, like(a));
  }
}

at::Tensor author::in_place(const at::Tensor& a) {
  at::Tensor copy = a.clone();
  switch (below(6)) {
    case 0:
      return copy.mul_(fit(pick(), a)).add_(1);
    case 1:
      return copy.tanh_().sub_(like(a));
    case 2:
      copy.narrow(0, 0, 1).mul_(3);
      return copy;
    case 3:
      copy.select(0, 0).copy_(like(a).select(0, 0) * 2);
      return copy;
    case 4:
      copy.t().add_(like(a).t());
      return copy * copy;
    default: {
      const at::Tensor view = copy.view({-1});
      copy.mul_(2);
      return (view * view).unsqueeze(0);
    }
  }
}

at::Tensor author::unusual(const at::Tensor& a) {
  switch (below(8)) {
    case 0:
      return a.to(at::kDouble);
    case 1:
      return a.to(at::kBFloat16) * 2;
    case 2:
      return a.is_complex() ? at::view_as_real(a).sum(-1) : at::complex(a, like(a));
    case 3:
      return a.abs() + a.detach();
    case 4:
      return at::embedding(leaves_[below(leaves_.size())], rows(leaves_.front(), 2), -1, false, true);
    case 5:
      return a.to(at::kFloat).as_strided({a.size(0), 2}, {1, 0});
    case 6:
      return a * at::scalar_tensor(2.5, at::kDouble);
    default:
      return a.conj() * a.to(at::kHalf);
  }
}

at::Tensor author::custom(const at::Tensor& a) {
  ++features_["custom function"];
  if (once_in(40)) return noted("failing function", failing::apply(a, once_in(2)));
  if (once_in(3)) return noted("undefined gradient", lazy::apply(a, once_in(3)));
  const auto both = product_and_sum::apply(a, like(a));
  if (once_in(2)) keep(both[1]);
  return both[0];
}

// Some tensors go to the other side in one message, and the program continues there.
void author::cross_over() {
  std::vector<at::Tensor> leaving;
  for (std::size_t i = 1 + below(3); i > 0; --i) {
    const at::Tensor next = pick();
    const bool twice = std::any_of(leaving.begin(), leaving.end(), [&](auto& other) { return other.is_same(next); });
    if (!twice) leaving.push_back(next);
  }
  const auto arrived = options_.cross(leaving, side_, 1 - side_);
  side_ = 1 - side_;
  if (options_.calls && side_ == 1)
    std::erase_if(values_, [](const value& each) { return each.side == 1 && !each.tensor.is_leaf(); });
  // Some of these tensors meet, and each may be used again. The others go unused; a hook of theirs would fail.
  for (const at::Tensor& each : arrived)
    if (once_in(3)) each.register_hook([](const at::Tensor& gradient) { return gradient.clamp(-8, 8); });
  at::Tensor met = arrived.front();
  for (std::size_t i = 1; i < arrived.size(); ++i)
    if (!once_in(3)) met = met + arrived[i].sum() * 0.5;
  keep(met);
  for (const at::Tensor& each : arrived)
    if (arrived.size() == 1 || once_in(3)) keep(each);
}

void author::step() {
  if (options_.cross && once_in(4)) {
    cross_over();
    return;
  }
  const at::Tensor a = pick();
  try {
    switch (below(options_.unusual ? 9 : 5)) {
      case 0:
        return keep(pointwise(a));
      case 1:
        return keep(noted("view", shaped(a)));
      case 2:
        return keep(reduced(a));
      case 3:
        return keep(joined(a));
      case 4:
        return keep(layered(a));
      case 5:
        return keep(noted("in-place", in_place(a)));
      case 6:
        return keep(noted("unusual", unusual(a)));
      case 7:
        return keep(custom(a));
      default:
        return keep(pointwise(a) * 0.5);
    }
  } catch (const c10::Error&) {
    // An operation that refuses these tensors is skipped. The same seed always skips the same operations.
  }
}

at::Tensor author::root_gradient(const at::Tensor& root) {
  if (root.numel() == 1 && !root.is_complex() && once_in(2)) return {};
  if (once_in(4)) return noted("expanded gradient", at::ones({}, root.options()).expand_as(root));
  return normal(root.sizes(), root.scalar_type());
}

void author::write(random_program& program) {
  const std::size_t leaf_count = 3 + below(4);
  for (std::size_t i = 0; i < leaf_count; ++i) {
    leaves_.push_back(leaf());
    values_.push_back({leaves_.back(), options_.cross ? static_cast<int>(i % 2) : 0});
  }
  for (int i = 0; i < options_.steps; ++i) step();
  if (options_.cross && side_ != 0) cross_over();
  std::size_t root_count = once_in(2) ? 1 : 1 + below(3);
  for (std::size_t i = values_.size(); i > 0 && root_count > 0; --i) {
    if (values_[i - 1].side != 0 || (i != values_.size() && once_in(2))) continue;
    at::Tensor root = values_[i - 1].tensor;
    if (once_in(3)) root = root.is_complex() ? at::view_as_real(root).sum() : root.sum();
    program.roots.push_back(root);
    program.root_gradients.push_back(root_gradient(root));
    --root_count;
  }
  program.leaves = leaves_;
  program.features = features_;
  for (const value& each : values_) program.values.push_back(each.tensor);
}

}  // namespace

random_program::random_program(std::uint64_t seed, const program_options& options) { author(seed, options).write(*this); }

}  // namespace troupe::test
