# SPDX-License-Identifier: BSD-3-Clause
add_room(certificates
  authority.cpp
  identity.cpp
  kit.cpp
  openssl.cpp
  refusal_reason.cpp
  )
