/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The user ABI of NVIDIA's resource manager (RM), as far as climport uses it.
 *
 * Facts from the headers of NVIDIA/open-gpu-kernel-modules, each named below; sizes and offsets are
 * the same in the tags 515.43.04 to 595.45.04.  The ioctl numbers hold the sizes: a driver with
 * another layout answers with an error.
 */
#ifndef IMPORT_NVIDIA_RM_RM_ABI_H
#define IMPORT_NVIDIA_RM_RM_ABI_H

#include <stddef.h>
#include <stdint.h>
#include <sys/ioctl.h>

/* tests/fake/rm-abi compares. */
#define RM_ABI_TAGS ", open-gpu-kernel-modules 515.43.04 to 595.45.04"
#define RM_ABI_SIZE(type, bytes, source) _Static_assert(sizeof(type) == (bytes), source RM_ABI_TAGS)
#define RM_ABI_OFFSET(type, member, bytes, source) \
	_Static_assert(offsetof(type, member) == (bytes), source RM_ABI_TAGS)

#define RM_UUID_SIZE 16

#define RM_CONTROL_NODE "/dev/nvidiactl"
#define RM_DEVICE_NODE "/dev/nvidia%u"

/* nv-ioctl.h: nv_ioctl_card_info_t.  NV_ESC_CARD_INFO takes an array with a place for each GPU. */
struct rm_card {
	uint8_t is_valid;
	struct {
		uint32_t domain;
		uint8_t bus, slot, function;
		uint16_t vendor, device;
	} pci;
	uint32_t gpu; /* gpuId */
	uint16_t interrupt;
	uint64_t registers, registers_size, framebuffer, framebuffer_size;
	uint32_t minor; /* of the device node */
	uint8_t name[10];
};
RM_ABI_SIZE(struct rm_card, 72, "nv-ioctl.h: nv_ioctl_card_info_t");

/* nv-ioctl.h: nv_ioctl_rm_api_version_t */
struct rm_version {
	uint32_t command, reply;
	char text[64];
};
RM_ABI_SIZE(struct rm_version, 72, "nv-ioctl.h: nv_ioctl_rm_api_version_t");

#define RM_VERSION_COMPARE '1' /* NV_RM_API_VERSION_CMD_RELAXED: up to the first point */
#define RM_VERSION_QUERY '2'   /* before 530 CMD_OVERRIDE, which leaves the text empty */

#define RM_CARDS 32 /* nvlimits.h: NV_MAX_DEVICES */

/*
 * nvos.h: NVOS21_PARAMETERS.  Drivers before 535 have the status at @size.  Size and status are
 * written as zero, and the status is whichever of the two is not zero afterwards.
 */
struct rm_allocation {
	uint32_t client, parent, object, class;
	uint64_t parameters;
	uint32_t size, status;
};
RM_ABI_SIZE(struct rm_allocation, 32, "nvos.h: NVOS21_PARAMETERS");

/* nvos.h: NVOS54_PARAMETERS */
struct rm_control {
	uint32_t client, object, command, flags;
	uint64_t parameters;
	uint32_t size, status;
};
RM_ABI_SIZE(struct rm_control, 32, "nvos.h: NVOS54_PARAMETERS");

/* nvos.h: NVOS00_PARAMETERS */
struct rm_release {
	uint32_t client, parent, object, status;
};
RM_ABI_SIZE(struct rm_release, 16, "nvos.h: NVOS00_PARAMETERS");

/* nvos.h: NVOS02_PARAMETERS; nv-unix-nvos-params-wrappers.h: with a descriptor, or -1 */
struct rm_host_memory {
	uint32_t client, parent, object, class, flags;
	uint64_t address, limit; /* limit: the size less one */
	uint32_t status;
	int32_t fd __attribute__((aligned(8)));
};
RM_ABI_SIZE(struct rm_host_memory, 56,
	    "nv-unix-nvos-params-wrappers.h: nv_ioctl_nvos02_parameters_with_fd");
RM_ABI_OFFSET(struct rm_host_memory, fd, 48,
	      "nv-unix-nvos-params-wrappers.h: nv_ioctl_nvos02_parameters_with_fd");

/* nvos.h: NV_OS_DESC_MEMORY_ALLOCATION_PARAMS */
struct rm_file_memory {
	uint32_t type, flags, attributes, attributes2;
	uint64_t descriptor, limit;
	uint32_t descriptor_type, tag;
};
RM_ABI_SIZE(struct rm_file_memory, 40, "nvos.h: NV_OS_DESC_MEMORY_ALLOCATION_PARAMS");

/* cl0080.h: NV0080_ALLOC_PARAMETERS */
struct rm_device_parameters {
	uint32_t instance;
	uint32_t client_share, target_client, target_device, flags;
	uint64_t va_size, va_start, va_limit;
	uint32_t va_mode;
};
RM_ABI_SIZE(struct rm_device_parameters, 56, "cl0080.h: NV0080_ALLOC_PARAMETERS");

/* ctrl0000gpu.h: NV0000_CTRL_GPU_GET_UUID_INFO_PARAMS */
struct rm_uuid_info {
	uint8_t uuid[256];
	uint32_t flags;
	uint32_t gpu, device_instance, subdevice_instance;
};
RM_ABI_SIZE(struct rm_uuid_info, 272, "ctrl0000gpu.h: NV0000_CTRL_GPU_GET_UUID_INFO_PARAMS");

/* ctrl0000unix.h: NV0000_CTRL_OS_UNIX_EXPORT_OBJECTS_TO_FD_PARAMS */
struct rm_export {
	int32_t fd; /* an open control node, which becomes the descriptor */
	uint32_t device;
	uint16_t max_objects;
	uint8_t metadata[64];
	uint32_t objects[512];
	uint16_t object_count, index;
};
RM_ABI_SIZE(struct rm_export, 2128,
	    "ctrl0000unix.h: NV0000_CTRL_OS_UNIX_EXPORT_OBJECTS_TO_FD_PARAMS");

/* nv_escape.h and nv-ioctl-numbers.h.  Device: on the node of a GPU; others: on the control node. */
#define RM_IOCTL(number, type) _IOWR('F', number, type)
#define RM_ALLOCATE_HOST_MEMORY RM_IOCTL(0x27, struct rm_host_memory) /* device */
#define RM_FREE RM_IOCTL(0x29, struct rm_release)
#define RM_CONTROL RM_IOCTL(0x2A, struct rm_control)
#define RM_ALLOCATE RM_IOCTL(0x2B, struct rm_allocation)
#define RM_CARD_INFO RM_IOCTL(200, struct rm_card[RM_CARDS])
#define RM_REGISTER_FD RM_IOCTL(201, int32_t) /* device */
#define RM_VERSION RM_IOCTL(210, struct rm_version)

/* Classes: cl0000.h, cl0080.h, cl0071.h */
#define RM_CLASS_CLIENT 0x41u
#define RM_CLASS_DEVICE 0x80u
#define RM_CLASS_OS_DESCRIPTOR 0x71u /* memory that the operating system describes */

/* Controls of a client: ctrl0000gpu.h, ctrl0000unix.h */
#define RM_GET_UUID_INFO 0x274u
#define RM_UUID_BINARY 2u /* a SHA-1 UUID of 16 bytes */
#define RM_EXPORT_OBJECTS_TO_FD 0x3d0bu

/* nvos.h: NVOS02_FLAGS.  GPU_CACHEABLE_NO (bit 18) and LOCATION_PCI (bits 8 to 11) are zero. */
#define RM_HOST_PAGES (1u << 4)	  /* PHYSICALITY_NONCONTIGUOUS */
#define RM_HOST_CACHED (1u << 12) /* COHERENCY_CACHED: by the CPU */
#define RM_HOST_NO_MAP (1u << 30) /* MAPPING_NO_MAP, which the class demands */

/* nvos.h: NVOS32_ATTR, NVOS32_ATTR2, NVOS32_DESCRIPTOR_TYPE: the same for a file's memory */
#define RM_FILE_PCI (1u << 25)
#define RM_FILE_PAGES (1u << 27)
#define RM_FILE_WRITE_BACK (5u << 29)
#define RM_FILE_GPU_CACHEABLE_NO (2u << 2)
#define RM_FILE_HANDLE 4u

/* nvstatuscodes.h */
enum rm_status {
	RM_OK = 0,
	RM_GPU_IS_LOST = 0x0f,
	RM_HANDLE_IS_TAKEN = 0x19, /* NV_ERR_INSERT_DUPLICATE_NAME */
	RM_INSUFFICIENT_RESOURCES = 0x1a,
	RM_INSUFFICIENT_PERMISSIONS = 0x1b,
	RM_INVALID_ADDRESS = 0x1e,
	RM_INVALID_ARGUMENT = 0x1f,
	RM_INVALID_LIMIT = 0x2e,
	RM_NO_MEMORY = 0x51,
	RM_NOT_SUPPORTED = 0x56,
	RM_OBJECT_NOT_FOUND = 0x57,
};

#endif
