# SPDX-License-Identifier: BSD-3-Clause
add_room(contracts
  jobs.cpp
  send_credits.cpp)
