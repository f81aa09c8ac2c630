// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <troupe/engine/torch_version.hpp>

/// The names under which libtorch exports the functions that troupe stands in for. This file has macros alone, because
/// libtroupe_preload.so uses only the C library.
#define LIBTORCH_EXECUTE "_ZN5torch8autograd6Engine7executeERKSt6vectorINS0_4EdgeESaIS3_EERKS2_IN2at6TensorESaIS9_EEbbbS7_"
#if TROUPE_TORCH_HAS_INTRUSIVE_NODES
#define LIBTORCH_SET_COMPILED                                                                                          \
  "_ZN5torch8autograd6Engine21set_compiled_autogradEPFSt6vectorIN2at6TensorESaIS4_EERKN3c1013intrusive_ptrINS0_4NodeE" \
  "NS7_6detail34intrusive_target_default_null_typeIS9_EEEERKNS0_9GraphTaskEbRKS2_INS0_4EdgeESaISJ_EEE"
#else
#define LIBTORCH_SET_COMPILED                                                                                           \
  "_ZN5torch8autograd6Engine21set_compiled_autogradEPFSt6vectorIN2at6TensorESaIS4_EERKSt10shared_ptrINS0_4NodeEERKNS0_" \
  "9GraphTaskEbRKS2_INS0_4EdgeESaISF_EEE"
#endif
#define LIBTORCH_CURRENT "_ZN5torch8autograd16get_current_nodeEv"
#define LIBTORCH_BUFFERS "_ZN5torch8autograd30get_current_input_grad_buffersEPNS0_4NodeE"  // from libtorch 2.15 on
