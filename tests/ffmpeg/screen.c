/* SPDX-License-Identifier: Apache-2.0 */
/*
 * screen FILE COMMAND: shows a picture of ARGB8888 in the cursor's plane while a command of the shell
 * runs, with the plane's number in $PLANE, and writes the picture's bytes to FILE.  The plane of the
 * screen itself has no alpha with virtual cards, and FFmpeg maps no such picture.
 */
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include <xf86drm.h>

#include "display.h"

enum { SIDE = 64, BYTES = SIDE * SIDE * 4 };

static void screen_need(int is_right, const char *what)
{
	if (is_right)
		return;
	printf("screen: FAILED: %s: %s\n", what, strerror(errno));
	exit(1);
}

static uint32_t screen_create_picture(int card, const char *path)
{
	static unsigned char picture[BYTES];
	uint32_t handle, pitch;
	uint64_t size, offset;
	unsigned char *view;
	FILE *file = fopen(path, "we");

	for (int i = 0; i < BYTES; i++)
		picture[i] = (unsigned char)(i * 7 + i / 251);
	screen_need(file && fwrite(picture, BYTES, 1, file) == 1 && !fclose(file), path);
	screen_need(!drmModeCreateDumbBuffer(card, SIDE, SIDE, 32, 0, &handle, &pitch, &size),
		    "a buffer");
	screen_need(pitch == SIDE * 4 && !drmModeMapDumbBuffer(card, handle, &offset), "its pitch");
	view = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, card, (off_t)offset);
	screen_need(view != MAP_FAILED, "mmap");
	memcpy(view, picture, BYTES);
	munmap(view, size);
	return handle;
}

/* The plane that shows a picture of the cursor's size. */
static uint32_t screen_find_plane(int card)
{
	drmModePlaneRes *planes;
	uint32_t found = 0;

	screen_need(!drmSetClientCap(card, DRM_CLIENT_CAP_UNIVERSAL_PLANES, 1), "planes");
	planes = drmModeGetPlaneResources(card);
	screen_need(planes != NULL, "planes");
	for (uint32_t i = 0; i < planes->count_planes && !found; i++) {
		drmModePlane *plane = drmModeGetPlane(card, planes->planes[i]);
		drmModeFB *shown = plane ? drmModeGetFB(card, plane->fb_id) : NULL;

		if (shown && shown->width == SIDE)
			found = planes->planes[i];
		drmModeFreeFB(shown);
		drmModeFreePlane(plane);
	}
	drmModeFreePlaneResources(planes);
	screen_need(found != 0, "no plane has the picture");
	return found;
}

int main(int argc, char **argv)
{
	struct display display;
	char number[16];
	int status;

	if (argc != 3)
		return 2;
	screen_need(!display_open(&display, NULL), display.message);
	screen_need(!display_show(&display, 0), display.message);
	screen_need(!drmModeSetCursor(display.fd, display.crtc,
				      screen_create_picture(display.fd, argv[1]), SIDE, SIDE),
		    "drmModeSetCursor");
	snprintf(number, sizeof(number), "%u", screen_find_plane(display.fd));
	setenv("PLANE", number, 1);
	status = system(argv[2]);
	display_close(&display);
	return status ? 1 : 0;
}
