/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The objects of the self-test of images: two images over one region, and a kernel that copies
 * pixels between both images or, if images are write-only, writes pixels of both.  Images that are
 * made from buffers have a buffer each.  The kernel is always compiled.
 */
#ifndef ICD_SELFTEST_IMAGE_SESSION_H
#define ICD_SELFTEST_IMAGE_SESSION_H

#include "icd/selftest/selftest.h"
#include "icd/selftest/session.h"

#define IMAGE_PIXELS 3

/* The first two members are the caller's; the rest, NULL where missing, ends with the session. */
struct image_session {
	const struct selftest_image *image;
	struct import_region *region;
	struct session base; /* a queue of a device is the user's to make */
	cl_kernel kernel;
	cl_mem a, b;	 /* written, and read or written */
	cl_mem roots[2]; /* the buffers below a and b, if the images are made from buffers */
};

bool image_session_is_write_only(const struct image_session *s);

/* CL_SUCCESS or an error of the driver.  image_session_end() follows in both cases. */
cl_int image_session_begin(struct image_session *s, const cl_device_id *devices,
			   cl_uint num_devices);
void image_session_end(struct image_session *s);

/*
 * Runs the kernel, and waits.  The kernel copies the pixel at[0] to at[1] by image a, and at[1],
 * read by image b, to at[2]; or writes @value to at[1] by image a and to at[2] by image b.
 */
cl_int image_session_launch(struct image_session *s, const cl_int at[IMAGE_PIXELS][2],
			    cl_uint value);

#endif /* ICD_SELFTEST_IMAGE_SESSION_H */
