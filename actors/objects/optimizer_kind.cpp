// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/objects/optimizer_kind.hpp>

#include <array>
#include <tuple>
#include <utility>

#include <torch/optim/adagrad.h>
#include <torch/optim/adam.h>
#include <torch/optim/adamw.h>
#include <torch/optim/sgd.h>

#include <troupe/messages/errors.hpp>

namespace troupe::objects {

namespace {

/// An option of O, one of libtorch's options classes. `read` and `write` use a double; for a flag the double is 1 or 0. In
/// troupe::attributes a flag is a bool, and any other option is a double or an integer.
template <class O>
struct option {
  const char* name;
  bool flag;
  double (*read)(const O&);
  void (*write)(O&, double);
};

template <class O>
struct adam_options {
  static constexpr std::array<option<O>, 6> all{{
    {"lr", false, [](const O& o) { return o.lr(); }, [](O& o, double x) { o.lr(x); }},
    {"beta1", false, [](const O& o) { return std::get<0>(o.betas()); },
     [](O& o, double x) {
       o.betas({x, std::get<1>(o.betas())});
     }},
    {"beta2", false, [](const O& o) { return std::get<1>(o.betas()); },
     [](O& o, double x) {
       o.betas({std::get<0>(o.betas()), x});
     }},
    {"eps", false, [](const O& o) { return o.eps(); }, [](O& o, double x) { o.eps(x); }},
    {"weight_decay", false, [](const O& o) { return o.weight_decay(); }, [](O& o, double x) { o.weight_decay(x); }},
    {"amsgrad", true, [](const O& o) { return o.amsgrad() ? 1.0 : 0.0; }, [](O& o, double x) { o.amsgrad(x != 0); }},
  }};
};

struct sgd_options {
  using O = torch::optim::SGDOptions;
  static constexpr std::array<option<O>, 5> all{{
    {"lr", false, [](const O& o) { return o.lr(); }, [](O& o, double x) { o.lr(x); }},
    {"momentum", false, [](const O& o) { return o.momentum(); }, [](O& o, double x) { o.momentum(x); }},
    {"dampening", false, [](const O& o) { return o.dampening(); }, [](O& o, double x) { o.dampening(x); }},
    {"weight_decay", false, [](const O& o) { return o.weight_decay(); }, [](O& o, double x) { o.weight_decay(x); }},
    {"nesterov", true, [](const O& o) { return o.nesterov() ? 1.0 : 0.0; }, [](O& o, double x) { o.nesterov(x != 0); }},
  }};
};

struct adagrad_options {
  using O = torch::optim::AdagradOptions;
  static constexpr std::array<option<O>, 5> all{{
    {"lr", false, [](const O& o) { return o.lr(); }, [](O& o, double x) { o.lr(x); }},
    {"lr_decay", false, [](const O& o) { return o.lr_decay(); }, [](O& o, double x) { o.lr_decay(x); }},
    {"weight_decay", false, [](const O& o) { return o.weight_decay(); }, [](O& o, double x) { o.weight_decay(x); }},
    {"initial_accumulator_value", false, [](const O& o) { return o.initial_accumulator_value(); },
     [](O& o, double x) { o.initial_accumulator_value(x); }},
    {"eps", false, [](const O& o) { return o.eps(); }, [](O& o, double x) { o.eps(x); }},
  }};
};

template <class S>
struct adam_state {
  static std::vector<std::string> slots() { return {"exp_avg", "exp_avg_sq", "max_exp_avg_sq"}; }
  static parameter_state read(const S& from) {
    return {true, from.step(), {from.exp_avg(), from.exp_avg_sq(), from.max_exp_avg_sq()}};
  }
  static void write(S& to, parameter_state from) {
    to.step(from.step);
    to.exp_avg(std::move(from.slots[0]));
    to.exp_avg_sq(std::move(from.slots[1]));
    to.max_exp_avg_sq(std::move(from.slots[2]));
  }
};

struct sgd_state {
  using S = torch::optim::SGDParamState;
  static std::vector<std::string> slots() { return {"momentum_buffer"}; }
  static parameter_state read(const S& from) { return {true, 0, {from.momentum_buffer()}}; }
  static void write(S& to, parameter_state from) { to.momentum_buffer(std::move(from.slots[0])); }
};

struct adagrad_state {
  using S = torch::optim::AdagradParamState;
  static std::vector<std::string> slots() { return {"sum"}; }
  static parameter_state read(const S& from) { return {true, from.step(), {from.sum()}}; }
  static void write(S& to, parameter_state from) {
    to.step(from.step);
    to.sum(std::move(from.slots[0]));
  }
};

constexpr auto of_all_groups = "initial_accumulator_value";  // which libtorch reads from the options of the optimizer alone

/// The value of an option as a number. Throws with the expected type if the type of the attribute is wrong.
double checked(const std::string& kind, const char* name, bool flag, const attribute& given) {
  if (const auto* x = std::get_if<bool>(&given.value); x != nullptr && flag) return *x ? 1.0 : 0.0;
  if (const auto* x = std::get_if<double>(&given.value); x != nullptr && !flag) return *x;
  if (const auto* x = std::get_if<std::int64_t>(&given.value); x != nullptr && !flag) return static_cast<double>(*x);
  throw error(errc::misuse, "optimizer '" + kind + "': option '" + name + "' takes " + (flag ? "true or false" : "a number") +
                              ", got a value of another type");
}

template <class Optimizer, class Options, class State, class OptionTable, class StateTable>
class kind_of final : public optimizer_kind {
 public:
  kind_of(std::string name, Options defaults) : name_(std::move(name)), slots_(StateTable::slots()), defaults_(defaults) {}

  const std::string& name() const noexcept override { return name_; }
  const std::vector<std::string>& slots() const noexcept override { return slots_; }

  using optimizer_kind::make;
  std::unique_ptr<torch::optim::Optimizer> make(std::vector<group> groups, const attributes& options) const override {
    Options mine = defaults_;
    assign(mine, options);
    try {
      std::vector<torch::optim::OptimizerParamGroup> all;
      for (auto& each : groups) {
        if (each.options.contains(of_all_groups))
          throw error(errc::misuse, "optimizer '" + name_ + "': option '" + of_all_groups +
                                      "' is one for all parameter groups; give it with the options of the optimizer");
        auto own = std::make_unique<Options>(mine);
        assign(*own, each.options);
        Optimizer(std::vector<at::Tensor>{}, *own);  // libtorch checks the options of an optimizer, but not those of a group
        all.emplace_back(std::move(each.parameters), std::move(own));
      }
      return std::make_unique<Optimizer>(all, mine);
    } catch (const c10::Error& refused) {
      throw error(errc::misuse, "optimizer '" + name_ + "': " + refused.what_without_backtrace());
    }
  }

  attributes options(const torch::optim::Optimizer& of, std::size_t group) const override {
    const auto& mine = static_cast<const Options&>(of.param_groups().at(group).options());
    attributes result;
    for (const auto& one : OptionTable::all)
      result.emplace(one.name, one.flag ? attribute(one.read(mine) != 0) : attribute(one.read(mine)));
    return result;
  }

  void set_options(torch::optim::Optimizer& of, const attributes& options, std::size_t group) const override {
    assign(static_cast<Options&>(of.param_groups().at(group).options()), options);
  }

  parameter_state state(const torch::optim::Optimizer& of, const at::Tensor& parameter) const override {
    auto found = of.state().find(parameter.unsafeGetTensorImpl());
    if (found == of.state().end()) return {};
    return StateTable::read(static_cast<const State&>(*found->second));
  }

  void set_state(torch::optim::Optimizer& of, const at::Tensor& parameter, parameter_state state) const override {
    if (!state.present) {
      of.state().erase(parameter.unsafeGetTensorImpl());
      return;
    }
    auto fresh = std::make_unique<State>();
    StateTable::write(*fresh, std::move(state));
    of.state()[parameter.unsafeGetTensorImpl()] = std::move(fresh);
  }

 private:
  void assign(Options& to, const attributes& options) const {
    for (const auto& [name, value] : options) {
      const option<Options>* found = nullptr;
      for (const auto& one : OptionTable::all) found = name == one.name ? &one : found;
      if (found == nullptr) refuse(name);
      found->write(to, checked(name_, found->name, found->flag, value));
    }
  }

  [[noreturn]] void refuse(const std::string& option) const {
    std::string known;
    for (const auto& one : OptionTable::all) known += (known.empty() ? "" : ", ") + std::string(one.name);
    throw error(errc::misuse, "optimizer '" + name_ + "' has no option '" + option + "'; it has " + known);
  }

  std::string name_;
  std::vector<std::string> slots_;
  Options defaults_;
};

template <class Optimizer, class Options, class State>
using adam_kind = kind_of<Optimizer, Options, State, adam_options<Options>, adam_state<State>>;

}  // namespace

std::unique_ptr<torch::optim::Optimizer> optimizer_kind::make(std::vector<at::Tensor> parameters,
                                                              const attributes& options) const {
  std::vector<group> one(1);
  one[0].parameters = std::move(parameters);
  return make(std::move(one), options);
}

const optimizer_kind& optimizer_kind::find(const std::string& name) {
  using namespace torch::optim;
  static const kind_of<SGD, SGDOptions, SGDParamState, sgd_options, sgd_state> sgd{"sgd", SGDOptions(1e-3)};
  static const adam_kind<Adam, AdamOptions, AdamParamState> adam{"adam", {}};
  static const adam_kind<AdamW, AdamWOptions, AdamWParamState> adamw{"adamw", {}};
  static const kind_of<Adagrad, AdagradOptions, AdagradParamState, adagrad_options, adagrad_state> adagrad{"adagrad", {}};
  for (const optimizer_kind* one : std::initializer_list<const optimizer_kind*>{&sgd, &adam, &adamw, &adagrad})
    if (one->name() == name) return *one;
  throw error(errc::misuse, "no optimizer is called '" + name + "'; there are sgd, adam, adamw and adagrad");
}

}  // namespace troupe::objects
