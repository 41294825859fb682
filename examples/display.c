/* SPDX-License-Identifier: Apache-2.0 */
#include "display.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <xf86drm.h>

enum { CARDS = 64, TIMEOUT_MS = 60000 };

__attribute__((format(printf, 3, 4))) static int display_fail(struct display *d, int error,
							      const char *format, ...)
{
	size_t used;
	va_list args;

	va_start(args, format);
	vsnprintf(d->message, sizeof(d->message), format, args);
	va_end(args);
	used = strlen(d->message);
	snprintf(d->message + used, sizeof(d->message) - used, ": %s", strerror(error));
	return -error;
}

/* A CRTC scans pictures out: the first that an encoder of the connector takes. */
static uint32_t display_find_crtc(int fd, const drmModeRes *resources,
				  const drmModeConnector *connector)
{
	for (int e = 0; e < connector->count_encoders; e++) {
		drmModeEncoder *encoder = drmModeGetEncoder(fd, connector->encoders[e]);
		uint32_t possible = encoder ? encoder->possible_crtcs : 0;

		drmModeFreeEncoder(encoder);
		for (int c = 0; c < resources->count_crtcs && c < 32; c++)
			if (possible & 1U << c)
				return resources->crtcs[c];
	}
	return 0;
}

/* The first mode of a connector is the screen's own. */
static int display_use_connector(struct display *d, const drmModeRes *resources, uint32_t id)
{
	drmModeConnector *connector = drmModeGetConnector(d->fd, id);

	if (connector && connector->connection == DRM_MODE_CONNECTED && connector->count_modes) {
		d->connector = id;
		d->crtc = display_find_crtc(d->fd, resources, connector);
		d->mode = connector->modes[0];
		d->width = d->mode.hdisplay;
		d->height = d->mode.vdisplay;
	}
	drmModeFreeConnector(connector);
	return d->crtc != 0;
}

static int display_open_card(struct display *d, const char *path)
{
	drmModeRes *resources;

	d->fd = open(path, O_RDWR | O_CLOEXEC);
	if (d->fd < 0)
		return display_fail(d, errno, "%s", path);
	resources = drmModeGetResources(d->fd);
	for (int i = 0; resources && i < resources->count_connectors; i++)
		if (display_use_connector(d, resources, resources->connectors[i]))
			break;
	drmModeFreeResources(resources);
	if (d->crtc)
		return 0;
	close(d->fd);
	d->fd = -1;
	return display_fail(d, ENODEV, "%s has no screen", path);
}

static int display_open_any(struct display *d)
{
	char path[32];

	for (int i = 0; i < CARDS; i++) {
		snprintf(path, sizeof(path), "/dev/dri/card%d", i);
		if (!display_open_card(d, path))
			return 0;
	}
	return display_fail(d, ENODEV, "no /dev/dri/card* has a screen");
}

/* A "dumb" buffer is memory that the CPU can write and the card can scan out. */
static int display_create_buffer(struct display *d, int index)
{
	uint64_t size;

	if (drmModeCreateDumbBuffer(d->fd, d->width, d->height, 32, 0, &d->handle[index], &d->pitch,
				    &size))
		return display_fail(d, errno, "a buffer of %u x %u", d->width, d->height);
	d->size = (size_t)size;
	if (drmModeAddFB(d->fd, d->width, d->height, 24, 32, d->pitch, d->handle[index],
			 &d->framebuffer[index]))
		return display_fail(d, errno, "a framebuffer of %u x %u", d->width, d->height);
	if (drmPrimeHandleToFD(d->fd, d->handle[index], DRM_CLOEXEC | DRM_RDWR, &d->dmabuf[index]))
		return display_fail(d, errno, "the dma-buf of a framebuffer");
	return 0;
}

int display_open(struct display *d, const char *path)
{
	int error;

	*d = (struct display){ .fd = -1, .dmabuf = { -1, -1 } };
	error = path ? display_open_card(d, path) : display_open_any(d);
	for (int i = 0; i < DISPLAY_BUFFERS && !error; i++)
		error = display_create_buffer(d, i);
	if (error)
		display_close(d);
	return error;
}

void display_close(struct display *d)
{
	for (int i = 0; i < DISPLAY_BUFFERS; i++) {
		if (d->dmabuf[i] >= 0)
			close(d->dmabuf[i]);
		if (d->framebuffer[i])
			drmModeRmFB(d->fd, d->framebuffer[i]);
		if (d->handle[i])
			drmModeDestroyDumbBuffer(d->fd, d->handle[i]);
	}
	if (d->fd >= 0)
		close(d->fd);
	d->fd = -1;
}

static void display_flipped(int fd, unsigned int sequence, unsigned int seconds,
			    unsigned int microseconds, void *display)
{
	(void)fd;
	(void)sequence;
	(void)seconds;
	(void)microseconds;
	((struct display *)display)->is_flipping = 0;
}

static int display_wait_flip(struct display *d)
{
	drmEventContext events = { .version = 2, .page_flip_handler = display_flipped };

	while (d->is_flipping) {
		struct pollfd pollfd = { .fd = d->fd, .events = POLLIN };
		int ready = poll(&pollfd, 1, TIMEOUT_MS);

		if (ready < 0 && errno != EINTR)
			return display_fail(d, errno, "poll");
		if (!ready)
			return display_fail(d, ETIMEDOUT, "no picture in %d ms", TIMEOUT_MS);
		if (ready > 0 && drmHandleEvent(d->fd, &events))
			return display_fail(d, errno, "drmHandleEvent");
	}
	return 0;
}

int display_show(struct display *d, unsigned int index)
{
	drmModeCrtc *crtc = drmModeGetCrtc(d->fd, d->crtc);
	int is_on = crtc && crtc->mode_valid && crtc->width == d->width &&
		    crtc->height == d->height && crtc->buffer_id;

	drmModeFreeCrtc(crtc);
	if (!is_on) {
		if (drmModeSetCrtc(d->fd, d->crtc, d->framebuffer[index], 0, 0, &d->connector, 1,
				   &d->mode))
			return display_fail(d, errno, "drmModeSetCrtc");
		return 0;
	}
	d->is_flipping = 1;
	if (drmModePageFlip(d->fd, d->crtc, d->framebuffer[index], DRM_MODE_PAGE_FLIP_EVENT, d))
		return display_fail(d, errno, "drmModePageFlip");
	return display_wait_flip(d);
}

int display_get_shown(struct display *d)
{
	drmModeCrtc *crtc = drmModeGetCrtc(d->fd, d->crtc);
	drmModeFB *shown = crtc ? drmModeGetFB(d->fd, crtc->buffer_id) : NULL;
	int fd = -1;

	drmModeFreeCrtc(crtc);
	if (!shown || drmPrimeHandleToFD(d->fd, shown->handle, DRM_CLOEXEC, &fd))
		fd = display_fail(d, errno, "the buffer that the screen shows");
	if (shown) {
		drmCloseBufferHandle(d->fd, shown->handle);
		drmModeFreeFB(shown);
	}
	return fd;
}
