// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdio>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>
#include <c10/core/Stream.h>

namespace troupe::bench {

/// The device that gpu_check looks at: the CPU, or an accelerator of any type.
class gpu_device {
 public:
  explicit gpu_device(c10::Device device) : device_(device) {}

  c10::Device device() const { return device_; }
  /// Returns when all work is done that was queued before.
  void synchronize() const;
  /// Streams of this device besides the current one. None on the CPU.
  std::vector<c10::Stream> streams(std::size_t count) const;
  /// Like "NVIDIA H100 80GB HBM3"; the name of the device if nobody knows more.
  std::string card() const;

 private:
  c10::Device device_;
};

/// What gpu_check has found, as a table.
///   GR-1  same() compares types, shapes and bits. A difference names the index of the first one, and failed() is true from
///         then on.
///   GR-2  with `spoil`, same() changes a bit of each result and compares then. So each comparison has to fail.
///   GR-3  with `live`, each row is there as soon as it is known, so a program that ends early leaves the others.
class gpu_report {
 public:
  explicit gpu_report(bool spoil, std::FILE* live = nullptr);

  /// A row of a comparison: whether the tensors of one side are those of the other side.
  void same(const std::string& what, const std::vector<at::Tensor>& expected, const std::vector<at::Tensor>& came);
  /// A row of a comparison that could not be made, because of an error. It counts as one that differs.
  void failure(const std::string& what, const std::string& reason);
  /// A row of what could not be checked here, and why.
  void skipped(const std::string& what, const std::string& reason);
  /// A row of a figure that should be at least `bar`. `figures`: what the ratio was made of.
  void figure(const std::string& what, const std::string& figures, double ratio, double bar);
  /// A row of a figure without a bar.
  void figure(const std::string& what, const std::string& figures, double ratio);
  /// A row of a value that should be at most `bar`.
  void at_most(const std::string& what, const std::string& figures, double value, double bar);
  /// A row without a figure.
  void note(const std::string& what, const std::string& text);

  /// A ratio as it stands in the table.
  static std::string two_digits(double value);

  bool failed() const { return differing_ > 0; }
  /// A table in Markdown, and below it the counts.
  std::string text() const;
  /// How many rows there are of each kind.
  std::string counts() const;

 private:
  void add(const std::string& what, const std::string& result, const std::string& ratio = {}, const std::string& bar = {});
  void add(const std::string& what, const std::string& figures, double value, bool reached, const std::string& bar);

  bool spoil_;
  std::FILE* live_;
  std::string table_;
  int same_ = 0, differing_ = 0, skipped_ = 0, reached_ = 0, short_ = 0;
};

/// Empty if the tensors have the same types, shapes and bits; otherwise the first difference.
std::string difference(const std::vector<at::Tensor>& expected, const std::vector<at::Tensor>& came);

}  // namespace troupe::bench
