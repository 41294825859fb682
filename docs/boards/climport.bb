# SPDX-License-Identifier: Apache-2.0
# Yocto, with the layer meta-oe, which has the headers and the loader.  conf/local.conf chooses the loader:
#   PREFERRED_PROVIDER_virtual/opencl-icd = "ocl-icd"
SUMMARY = "cl_arm_import_memory for any OpenCL driver, as a layer of the OpenCL loader"
LICENSE = "Apache-2.0"
LIC_FILES_CHKSUM = "file://LICENSE;md5=3b83ef96387f14655fc854ddc3c6bd57"

inherit cmake bash-completion externalsrc
EXTERNALSRC = "/path/to/climport"

DEPENDS = "opencl-headers virtual/opencl-icd"
EXTRA_OECMAKE = "-DBUILD_TESTING=OFF -DCLIMPORT_EXAMPLES=OFF"

FILES:${PN} += "${libdir}/climport ${datadir}"
# For one program, which looks clImportMemoryARM up in libOpenCL.so: not the system's library of that name.
PRIVATE_LIBS:${PN} = "libOpenCL.so"
