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

/// Strided tensors in travelling form, the form in which their elements are written: detached, without a conjugate or negative
/// bit, and without gaps. A sparse tensor gives two: its indices and its values.
using travelling_tensors = c10::SmallVector<at::Tensor, 8>;

/// Returns the tensor in travelling form. The result shares the storage, unless the tensor has gaps, overlaps or a lazy bit:
/// then the result is a copy. A sparse tensor is returned unchanged. Pre: the tensor can travel.
at::Tensor travelling_form(const at::Tensor& tensor);

/// Returns the travelling forms of all tensors, detached. A tensor that occurs twice has one form.
std::vector<at::Tensor> travelling_forms(const std::vector<at::Tensor>& tensors);

/// Describes tensors in a header and returns how many bytes their elements have. Adds the travelling form of each component to
/// `forms`. `packings`: how the tensors were packed (packed_tensors.hpp); empty if none was. Throws troupe::error:
/// unsupported_tensor for a tensor that can't travel, misuse for packings that are not as many as the tensors.
std::uint64_t describe_tensors(const std::vector<at::Tensor>& tensors, wire::Tensors& to, travelling_tensors& forms,
                               const std::vector<packing>& packings = {});

/// Notes in the header which components left ahead of the message, removes these components from `forms` and returns how many
/// bytes they have. Throws troupe::error(misuse) if `ahead` does not have one entry per component.
std::uint64_t leave_out(const sent_ahead& ahead, wire::Tensors& to, travelling_tensors& forms);

/// Returns the bytes [offset, offset + bytes) of a tensor in travelling form. The result shares the storage.
at::Tensor bytes_of(const at::Tensor& form, std::uint64_t offset, std::uint64_t bytes);

/// Sets `claimed` to how many bytes of elements have to follow the header. Returns an error text if the header contradicts
/// itself, or claims a shape that no tensor has or more than `available` bytes. Allocates no memory.
std::string check_tensors(const wire::Tensors& header, std::uint64_t available, std::uint64_t& claimed);

/// Reads the tensors of a header that check_tensors has accepted. Each strided component gets a storage of its own, 64-byte
/// aligned: a new storage, or the storage of the elements that came ahead of the message. Refuses a sparse tensor whose indices
/// lie outside its shape, or are out of order although the header says that they are in order. A packed tensor is read as its
/// bytes; `packings` then has an entry for each tensor, and is empty if no tensor is packed.
caf::error read_tensors(const wire::Tensors& header, caf::deserializer& source, std::vector<at::Tensor>& to,
                        std::vector<packing>& packings);

/// Writes the elements directly from the storages. An undefined form writes nothing.
caf::error write_tensors(const travelling_tensors& forms, caf::serializer& sink);

}  // namespace troupe
