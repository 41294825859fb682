################################################################################
#
# climport
#
# Buildroot: this file and Config.in in package/climport.  Buildroot's libopencl is a driver that programs link to, and
# has to become a loader for layers: a package of ocl-icd, with the headers of OpenCL.
#
################################################################################

CLIMPORT_VERSION = 0.2.0
CLIMPORT_SITE = /path/to/climport
CLIMPORT_SITE_METHOD = local
CLIMPORT_LICENSE = Apache-2.0
CLIMPORT_LICENSE_FILES = LICENSE
CLIMPORT_INSTALL_STAGING = YES
CLIMPORT_DEPENDENCIES = libopencl
CLIMPORT_CONF_OPTS = -DBUILD_TESTING=OFF -DCLIMPORT_EXAMPLES=OFF

$(eval $(cmake-package))
