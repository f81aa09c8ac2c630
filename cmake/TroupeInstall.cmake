# SPDX-License-Identifier: BSD-3-Clause
# Headers under include/troupe, and the package that find_package(troupe) finds. The helpers of
# TroupeTargets.cmake install the targets.
include(CMakePackageConfigHelpers)

foreach(room IN ITEMS messages engine devices actors)
  if(EXISTS "${PROJECT_SOURCE_DIR}/${room}/CMakeLists.txt")
    install(DIRECTORY "${PROJECT_SOURCE_DIR}/${room}"
      DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/troupe FILES_MATCHING PATTERN "*.hpp")
  endif()
endforeach()
if(EXISTS "${PROJECT_SOURCE_DIR}/actors/troupe.hpp")
  install(FILES "${PROJECT_SOURCE_DIR}/actors/troupe.hpp"
    DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/troupe)
endif()

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
