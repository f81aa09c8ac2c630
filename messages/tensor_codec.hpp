// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>
#include <c10/util/SmallVector.h>
#include <caf/fwd.hpp>

#include <troupe/messages/messages.hpp>
#include <troupe/messages/tensor_rules.hpp>

namespace troupe {

namespace wire {
class Tensors;
}

/// Strided tensors in the form in which their elements are written: detached, no conjugate or negative bit, and without gaps.
/// A sparse tensor has two: its indices and its values.
using travelling_tensors = c10::SmallVector<at::Tensor, 8>;

/// The tensor as its elements are written. Shares the storage, unless the tensor has gaps, overlaps or a lazy bit: then
/// it is a copy. A sparse one stays as it is. Pre: it can travel.
at::Tensor travelling_form(const at::Tensor& tensor);

/// The same for all, detached; a tensor that is there twice has one form.
std::vector<at::Tensor> travelling_forms(const std::vector<at::Tensor>& tensors);

/// Describes tensors in a header and returns the bytes of their elements. Adds what is written of each to `forms`.
/// Throws troupe::error(unsupported_tensor) for one that can't travel.
std::uint64_t describe_tensors(const std::vector<at::Tensor>& tensors, wire::Tensors& to, travelling_tensors& forms);

/// Says in the header which parts left ahead of the message, takes them from `forms` and returns their bytes. Throws
/// troupe::error(misuse) if `ahead` has not an entry for each part.
std::uint64_t leave_out(const sent_ahead& ahead, wire::Tensors& to, travelling_tensors& forms);

/// The elements [offset, offset + bytes) of a tensor in travelling form, as they are written; shares its storage.
at::Tensor bytes_of(const at::Tensor& form, std::uint64_t offset, std::uint64_t bytes);

/// Bytes of elements that a header claims to follow it; an error text where the header contradicts itself, claims a shape no tensor
/// has, or more than `available`. Allocates nothing.
std::string check_tensors(const wire::Tensors& header, std::uint64_t available, std::uint64_t& claimed);

/// Reads the tensors of a header that check_tensors found good. A storage of its own, 64-byte aligned, for each strided part: a
/// fresh one, or that in which the elements came ahead. Refuses sparse ones whose indices lie outside, or are not in order where
/// the header says that they are.
caf::error read_tensors(const wire::Tensors& header, caf::deserializer& source, std::vector<at::Tensor>& to);

/// Writes the elements, straight from the storage; of an undefined form nothing.
caf::error write_tensors(const travelling_tensors& forms, caf::serializer& sink);

}  // namespace troupe
