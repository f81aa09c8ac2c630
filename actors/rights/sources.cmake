# SPDX-License-Identifier: BSD-3-Clause
add_room(rights
  policy.cpp
  )
