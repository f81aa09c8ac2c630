# SPDX-License-Identifier: BSD-3-Clause
add_room(certificates
  authority.cpp
  file_text.cpp
  identity.cpp
  kit.cpp
  openssl.cpp
  refusal_reason.cpp
  revocations.cpp
  signed_before.cpp)
