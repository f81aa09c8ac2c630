// SPDX-License-Identifier: BSD-3-Clause
#include "gpu_report.hpp"

#include <dlfcn.h>
#include <cstdio>
#include <cstring>
#include <sstream>

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>
#include <c10/core/impl/VirtualGuardImpl.h>

namespace troupe::bench {

void gpu_device::synchronize() const {
  if (device_.is_cpu()) return;
  c10::impl::VirtualGuardImpl(device_.type()).synchronizeDevice(device_.has_index() ? device_.index() : c10::DeviceIndex{0});
}

std::vector<c10::Stream> gpu_device::streams(std::size_t count) const {
  std::vector<c10::Stream> all;
  if (device_.is_cpu()) return all;
  const c10::impl::VirtualGuardImpl accelerator(device_.type());
  for (std::size_t i = 0; i < count; ++i) all.push_back(accelerator.getStreamFromGlobalPool(device_));
  return all;
}

// libtorch's CUDA headers are not used, so the driver is asked.
std::string gpu_device::card() const {
  const std::string unknown = device_.str();
  if (!device_.is_cuda()) return unknown;
  void* const driver = dlopen("libcuda.so.1", RTLD_NOW);
  if (driver == nullptr) return unknown;
  const auto get = reinterpret_cast<int (*)(int*, int)>(dlsym(driver, "cuDeviceGet"));
  const auto name = reinterpret_cast<int (*)(char*, int, int)>(dlsym(driver, "cuDeviceGetName"));
  int number = 0;
  char text[256] = "";
  if (get == nullptr || name == nullptr || get(&number, device_.has_index() ? device_.index() : 0) != 0 ||
      name(text, sizeof text, number) != 0)
    return unknown;
  return text;
}

namespace {

std::string outline(const at::Tensor& tensor) {
  if (!tensor.defined()) return "nothing";
  std::ostringstream text;
  text << tensor.scalar_type() << ' ' << tensor.sizes();
  return text.str();
}

at::Tensor bytes_of(const at::Tensor& tensor) { return tensor.detach().cpu().contiguous().view(-1).view(at::kByte); }

std::string first_difference(const at::Tensor& expected, const at::Tensor& came) {
  const at::Tensor a = bytes_of(expected);
  const at::Tensor b = bytes_of(came);
  const auto bytes = static_cast<std::size_t>(a.numel());
  const auto* left = a.const_data_ptr<std::uint8_t>();
  const auto* right = b.const_data_ptr<std::uint8_t>();
  if (bytes == 0 || std::memcmp(left, right, bytes) == 0) return {};
  std::size_t first = 0;
  while (left[first] == right[first]) ++first;
  return "element " + std::to_string(first / expected.element_size()) + " of " + outline(expected);
}

// The last tensor with elements, with one bit changed.
void flip_a_bit(std::vector<at::Tensor>& tensors) {
  const c10::NoGradGuard no_graph;
  for (auto each = tensors.rbegin(); each != tensors.rend(); ++each) {
    if (!each->defined() || each->numel() == 0) continue;
    *each = each->detach().cpu().clone(at::MemoryFormat::Contiguous);
    static_cast<unsigned char*>(each->mutable_data_ptr())[each->nbytes() - 1] ^= 1;
    return;
  }
}

}  // namespace

std::string difference(const std::vector<at::Tensor>& expected, const std::vector<at::Tensor>& came) {
  if (expected.size() != came.size())
    return std::to_string(came.size()) + " tensors came, expected " + std::to_string(expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const std::string where = "tensor " + std::to_string(i) + ": ";
    if (outline(expected[i]) != outline(came[i])) return where + outline(came[i]) + " came, expected " + outline(expected[i]);
    if (!expected[i].defined()) continue;
    if (const auto difference = first_difference(expected[i], came[i]); !difference.empty()) return where + difference;
  }
  return {};
}

std::string gpu_report::two_digits(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.2f", value);
  return text;
}

gpu_report::gpu_report(bool spoil, std::FILE* live)
    : spoil_(spoil), live_(live), table_("| what | result | ratio | bar |\n| --- | --- | --- | --- |\n") {
  if (live_ != nullptr) std::fputs(table_.c_str(), live_);
}

void gpu_report::add(const std::string& what, const std::string& result, const std::string& ratio, const std::string& bar) {
  const auto row = "| " + what + " | " + result + " | " + ratio + " | " + bar + " |\n";
  table_ += row;
  if (live_ == nullptr) return;
  std::fputs(row.c_str(), live_);
  std::fflush(live_);
}

void gpu_report::add(const std::string& what, const std::string& figures, double value, bool reached, const std::string& bar) {
  ++(reached ? reached_ : short_);
  add(what, figures, two_digits(value) + (reached ? "" : ", **short**"), bar);
}

void gpu_report::same(const std::string& what, const std::vector<at::Tensor>& expected, const std::vector<at::Tensor>& came) {
  auto theirs = came;
  if (spoil_) flip_a_bit(theirs);
  std::string text = expected.empty() ? "there is nothing to compare" : difference(expected, theirs);
  ++(text.empty() ? same_ : differing_);
  add(what, text.empty() ? "same bits" : "**differs**: " + text);
}

void gpu_report::failure(const std::string& what, const std::string& reason) {
  ++differing_;
  add(what, "**failed**: " + reason);
}

void gpu_report::skipped(const std::string& what, const std::string& reason) {
  ++skipped_;
  add(what, "skipped: " + reason);
}

void gpu_report::figure(const std::string& what, const std::string& figures, double ratio, double bar) {
  add(what, figures, ratio, ratio >= bar, two_digits(bar));
}

void gpu_report::figure(const std::string& what, const std::string& figures, double ratio) {
  add(what, figures, two_digits(ratio));
}

void gpu_report::at_most(const std::string& what, const std::string& figures, double value, double bar) {
  add(what, figures, value, value <= bar, "≤" + two_digits(bar));
}

void gpu_report::note(const std::string& what, const std::string& text) { add(what, text); }

std::string gpu_report::counts() const {
  return "\n" + std::to_string(same_) + " comparisons with the same bits, " + std::to_string(differing_) + " that differ; " +
         std::to_string(reached_) + " figures reach their bars, " + std::to_string(short_) + " are short; " +
         std::to_string(skipped_) + " skipped.\n";
}

std::string gpu_report::text() const { return table_ + counts(); }

}  // namespace troupe::bench
