# SPDX-License-Identifier: BSD-3-Clause
# C++ Actor Framework 0.17, with the components CAF::core, CAF::io and CAF::openssl.
find_path(CAF_INCLUDE_DIR caf/config.hpp)
mark_as_advanced(CAF_INCLUDE_DIR)
if(CAF_INCLUDE_DIR)
  file(STRINGS "${CAF_INCLUDE_DIR}/caf/config.hpp" caf_version_line REGEX "define CAF_VERSION [0-9]+")
  string(REGEX MATCH "[0-9]+$" caf_version_number "${caf_version_line}")
  if(caf_version_number)
    math(EXPR caf_major "${caf_version_number} / 10000")
    math(EXPR caf_minor "${caf_version_number} / 100 % 100")
    math(EXPR caf_patch "${caf_version_number} % 100")
    set(CAF_VERSION "${caf_major}.${caf_minor}.${caf_patch}")
  endif()
endif()

if(NOT CAF_FIND_COMPONENTS)
  set(CAF_FIND_COMPONENTS core io openssl)
endif()
foreach(component IN LISTS CAF_FIND_COMPONENTS)
  find_library(CAF_${component}_LIBRARY caf_${component})
  mark_as_advanced(CAF_${component}_LIBRARY)
  if(CAF_${component}_LIBRARY)
    set(CAF_${component}_FOUND TRUE)
  endif()
endforeach()

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(CAF REQUIRED_VARS CAF_INCLUDE_DIR VERSION_VAR CAF_VERSION
  HANDLE_COMPONENTS HANDLE_VERSION_RANGE
  REASON_FAILURE_MESSAGE "CAF 0.17.6 is the package libcaf-dev of Debian 12 and 13 ('make deps' installs it). CAF 0.18 has another \
interface. Where the package is of another version, build the source of Debian 13's package actor-framework, and name the folder where \
you installed it in CMAKE_PREFIX_PATH")

if(CAF_FOUND)
  find_package(Threads REQUIRED)
  foreach(component IN LISTS CAF_FIND_COMPONENTS)
    if(CAF_${component}_LIBRARY AND NOT TARGET CAF::${component})
      add_library(CAF::${component} SHARED IMPORTED)
      set_target_properties(CAF::${component} PROPERTIES
        IMPORTED_LOCATION "${CAF_${component}_LIBRARY}"
        INTERFACE_INCLUDE_DIRECTORIES "${CAF_INCLUDE_DIR}")
      if(component STREQUAL core)
        target_link_libraries(CAF::core INTERFACE Threads::Threads)
      elseif(component STREQUAL io)
        target_link_libraries(CAF::io INTERFACE CAF::core)
      else()
        find_package(OpenSSL REQUIRED)
        target_link_libraries(CAF::${component} INTERFACE CAF::io OpenSSL::SSL)
      endif()
    endif()
  endforeach()
endif()
