# SPDX-License-Identifier: BSD-3-Clause
# Headers under include/troupe, and the package that find_package(troupe) finds. The helpers of
# TroupeTargets.cmake install the targets.
include(CMakePackageConfigHelpers)

# What programs include, and what these headers reach; nothing else is installed. tests/structure checks that none of it is private
# to a room.
set(troupe_public_headers
  actors/troupe.hpp engine/backward.hpp engine/drop_in/install.hpp messages/caf_error.hpp)

set(headers ${troupe_public_headers})
set(installed)
while(headers)
  list(POP_FRONT headers header)
  if(NOT header IN_LIST installed AND EXISTS "${PROJECT_SOURCE_DIR}/${header}")
    list(APPEND installed ${header})
    get_filename_component(folder ${header} DIRECTORY)
    install(FILES "${PROJECT_SOURCE_DIR}/${header}" DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/troupe/${folder})
    file(STRINGS "${PROJECT_SOURCE_DIR}/${header}" includes REGEX "^#include <troupe/")
    list(TRANSFORM includes REPLACE "^#include <troupe/(.*)>.*" "\\1")
    list(APPEND headers ${includes})
  endif()
endwhile()
install(FILES "${PROJECT_SOURCE_DIR}/actors/troupe.hpp" DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/troupe)

set(troupe_package_folder ${CMAKE_INSTALL_LIBDIR}/cmake/troupe)
configure_package_config_file("${PROJECT_SOURCE_DIR}/cmake/troupeConfig.cmake.in"
  "${PROJECT_BINARY_DIR}/troupeConfig.cmake" INSTALL_DESTINATION ${troupe_package_folder})
write_basic_package_version_file("${PROJECT_BINARY_DIR}/troupeConfigVersion.cmake"
  COMPATIBILITY SameMinorVersion)
install(EXPORT troupeTargets NAMESPACE troupe:: DESTINATION ${troupe_package_folder})
install(FILES
  "${PROJECT_BINARY_DIR}/troupeConfig.cmake" "${PROJECT_BINARY_DIR}/troupeConfigVersion.cmake"
  "${PROJECT_SOURCE_DIR}/cmake/FindCAF.cmake" "${PROJECT_SOURCE_DIR}/cmake/FindLibTorch.cmake"
  DESTINATION ${troupe_package_folder})
install(FILES "${PROJECT_SOURCE_DIR}/LICENSE" DESTINATION ${CMAKE_INSTALL_DOCDIR})
