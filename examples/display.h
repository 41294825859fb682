/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shows pictures on a screen, by DRM: two buffers of the screen's size, XRGB8888, each a dma-buf.
 *
 *	display_open, { write to a dma-buf that is not shown, display_show }..., display_close
 *
 * The module knows no OpenCL.  The process needs the screen for itself: no desktop runs on the card.
 * Functions return 0 or -errno and leave a sentence in display->message.  One thread at a time.  All
 * functions may sleep.
 */
#ifndef EXAMPLES_DISPLAY_H
#define EXAMPLES_DISPLAY_H

#include <stddef.h>
#include <stdint.h>
#include <xf86drmMode.h>

enum { DISPLAY_BUFFERS = 2 };

struct display {
	int fd;
	uint32_t connector, crtc;
	drmModeModeInfo mode;
	unsigned int width, height;
	unsigned int pitch; /* bytes from line to line */
	size_t size;	    /* bytes of a buffer */
	uint32_t handle[DISPLAY_BUFFERS], framebuffer[DISPLAY_BUFFERS];
	int dmabuf[DISPLAY_BUFFERS]; /* the display's descriptors; -1 for no buffer */
	int is_flipping;
	char message[160]; /* the last error */
};

/* Opens @path, or with NULL the first /dev/dri/card* with a screen.  After an error nothing is open. */
int display_open(struct display *d, const char *path);
void display_close(struct display *d);

/* Shows the buffer @index from the screen's next picture on, and waits for that picture. */
int display_show(struct display *d, unsigned int index);

/* A new descriptor of the dma-buf that the screen shows, the caller's; or -errno. */
int display_get_shown(struct display *d);

#endif
