# SPDX-License-Identifier: BSD-3-Clause
# Installs headers under include/troupe, and the package that find_package(troupe) finds. The helpers of
# TroupeTargets.cmake install the targets.
include(CMakePackageConfigHelpers)
include(installed_headers)

set(sums)
foreach(header IN LISTS troupe_installed_headers)
  set(path "${PROJECT_SOURCE_DIR}/${header}")
  # Runs CMake again when the header changes, for its sum.
  set_property(DIRECTORY "${PROJECT_SOURCE_DIR}" APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${path}")
  file(SHA256 "${path}" sum)
  list(APPEND sums ${sum})
  get_filename_component(folder ${header} DIRECTORY)
  if(header STREQUAL "actors/troupe.hpp")
    set(folder)
  endif()
  install(FILES "${path}" DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/troupe/${folder})
endforeach()

# What a library that `troupe node --load` loads has to share with the program: the installed headers, libtorch and CAF.
string(SHA256 sum "${sums}")
string(SUBSTRING ${sum} 0 12 sum)
set(troupe_interface
  "troupe ${PROJECT_VERSION} with headers ${sum}, libtorch ${LibTorch_VERSION}, CAF ${CAF_VERSION}")
target_compile_definitions(troupe_program PRIVATE "TROUPE_INTERFACE=\"${troupe_interface}\"")
# Such a library has no troupe of its own: it uses that of the program.
add_library(troupe_loadable INTERFACE)
add_library(troupe::loadable ALIAS troupe_loadable)
set_target_properties(troupe_loadable PROPERTIES EXPORT_NAME loadable)
target_compile_features(troupe_loadable INTERFACE cxx_std_20)
target_compile_definitions(troupe_loadable INTERFACE "TROUPE_INTERFACE=\"${troupe_interface}\"")
target_include_directories(troupe_loadable INTERFACE
  $<BUILD_INTERFACE:${troupe_include_root}> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
target_link_libraries(troupe_loadable INTERFACE LibTorch::torch_cpu CAF::io)
install(TARGETS troupe_loadable EXPORT troupeTargets)

set(troupe_package_folder ${CMAKE_INSTALL_LIBDIR}/cmake/troupe)
configure_package_config_file("${PROJECT_SOURCE_DIR}/cmake/troupeConfig.cmake.in"
  "${PROJECT_BINARY_DIR}/troupeConfig.cmake" INSTALL_DESTINATION ${troupe_package_folder})
write_basic_package_version_file("${PROJECT_BINARY_DIR}/troupeConfigVersion.cmake"
  COMPATIBILITY SameMinorVersion)
install(EXPORT troupeTargets NAMESPACE troupe:: DESTINATION ${troupe_package_folder})
install(FILES
  "${PROJECT_BINARY_DIR}/troupeConfig.cmake" "${PROJECT_BINARY_DIR}/troupeConfigVersion.cmake"
  "${PROJECT_SOURCE_DIR}/cmake/FindCAF.cmake" "${PROJECT_SOURCE_DIR}/cmake/FindLibTorch.cmake"
  "${PROJECT_SOURCE_DIR}/cmake/TroupeProtobuf.cmake"
  DESTINATION ${troupe_package_folder})
install(FILES "${PROJECT_SOURCE_DIR}/LICENSE" DESTINATION ${CMAKE_INSTALL_DOCDIR})
