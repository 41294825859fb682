/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Captures frames from a V4L2 device into dma-bufs: the device's own, which the device exports
 * (VIDIOC_EXPBUF), or dma-bufs of the caller (V4L2_MEMORY_DMABUF).
 *
 *	camera_open, camera_set_format, camera_export or camera_import, camera_start,
 *	{ camera_dequeue, camera_queue }..., camera_stop, camera_close
 *
 * The module knows no OpenCL and no pixel format: single-planar capture devices, packed formats.
 * Functions return 0 or -errno and leave a sentence in camera->message.  One thread at a
 * time.  All functions may sleep.
 */
#ifndef EXAMPLES_CAMERA_H
#define EXAMPLES_CAMERA_H

#include <stddef.h>
#include <stdint.h>

enum { CAMERA_BUFFERS = 8 };

struct camera {
	int fd;
	unsigned int width, height;
	unsigned int pitch;	    /* bytes from line to line */
	size_t frame_size;	    /* bytes of a frame */
	size_t buffer_size;	    /* bytes of a buffer: whole pages */
	unsigned int count;	    /* buffers in use */
	uint32_t memory;	    /* enum v4l2_memory */
	int dmabuf[CAMERA_BUFFERS]; /* the caller's or exported descriptors; else -1 */
	char message[160];	    /* the last error */
};

/*
 * Opens @path, or with NULL the first /dev/video* that can capture.  After an error no device is
 * open: camera_close() is allowed and not needed.
 */
int camera_open(struct camera *cam, const char *path);
void camera_close(struct camera *cam);

/*
 * Sets size and format (V4L2_PIX_FMT_*).  The driver may choose a different size, which is set in
 * @cam.  -EINVAL if the driver has no such format.
 */
int camera_set_format(struct camera *cam, unsigned int width, unsigned int height, uint32_t fourcc);

/*
 * Makes @count buffers in the driver, and exports each as a dma-buf with @access, O_RDWR
 * or O_RDONLY.  The descriptors are the caller's, with O_CLOEXEC.
 */
int camera_export(struct camera *cam, unsigned int count, int access, int *fds);

/*
 * Captures into the dma-bufs @fds, each of cam->buffer_size bytes or more.  The descriptors stay
 * the caller's, who keeps them open until camera_close().
 */
int camera_import(struct camera *cam, unsigned int count, const int *fds);

/* Hands all buffers to the driver and starts the stream. */
int camera_start(struct camera *cam);

/* Takes all buffers back; frames not dequeued are lost.  camera_start() may follow. */
int camera_stop(struct camera *cam);

/*
 * The next frame is in buffer *@index, the caller's until camera_queue(). *@sequence counts
 * frames, also lost frames; NULL if of no interest.  -ETIMEDOUT after @timeout_ms; -EIO if
 * the frame is bad, and its buffer was queued again.
 */
int camera_dequeue(struct camera *cam, int timeout_ms, unsigned int *index, unsigned int *sequence);
int camera_queue(struct camera *cam, unsigned int index);

#endif
