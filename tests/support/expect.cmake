# SPDX-License-Identifier: BSD-3-Clause
# For tests that are CMake scripts: fails unless `output`, what the last program printed, matches the pattern.
function(expect what)
  if(NOT output MATCHES "${what}")
    message(FATAL_ERROR "expected '${what}' in:\n${output}")
  endif()
endfunction()
