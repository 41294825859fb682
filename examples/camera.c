/* SPDX-License-Identifier: Apache-2.0 */
#include "camera.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/videodev2.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum { DEVICES = 64, CAPTURE = V4L2_BUF_TYPE_VIDEO_CAPTURE };

__attribute__((format(printf, 3, 4))) static int camera_fail(struct camera *cam, int error,
							     const char *format, ...)
{
	size_t used;
	va_list args;

	va_start(args, format);
	vsnprintf(cam->message, sizeof(cam->message), format, args);
	va_end(args);
	used = strlen(cam->message);
	snprintf(cam->message + used, sizeof(cam->message) - used, ": %s", strerror(error));
	return -error;
}

static int camera_ioctl(struct camera *cam, unsigned long request, void *arg, const char *what)
{
	while (ioctl(cam->fd, request, arg))
		if (errno != EINTR)
			return camera_fail(cam, errno, "%s", what);
	return 0;
}

static int open_capture(struct camera *cam, const char *path)
{
	struct v4l2_capability cap = { 0 };

	cam->fd = open(path, O_RDWR | O_NONBLOCK | O_CLOEXEC);
	if (cam->fd < 0)
		return camera_fail(cam, errno, "%s", path);
	if (!ioctl(cam->fd, VIDIOC_QUERYCAP, &cap) && (cap.device_caps & V4L2_CAP_VIDEO_CAPTURE) &&
	    (cap.device_caps & V4L2_CAP_STREAMING))
		return 0;
	close(cam->fd);
	cam->fd = -1;
	return camera_fail(cam, ENODEV, "%s does not capture video", path);
}

int camera_open(struct camera *cam, const char *path)
{
	char name[32];
	int error;

	*cam = (struct camera){ .fd = -1 };
	if (path)
		return open_capture(cam, path);
	for (int i = 0; i < DEVICES; i++) {
		snprintf(name, sizeof(name), "/dev/video%d", i);
		error = open_capture(cam, name);
		if (!error || error == -EACCES)
			return error;
	}
	return camera_fail(cam, ENODEV, "no /dev/video* captures video");
}

void camera_close(struct camera *cam)
{
	if (cam->fd >= 0)
		close(cam->fd);
	cam->fd = -1;
}

int camera_set_format(struct camera *cam, unsigned int width, unsigned int height, uint32_t fourcc)
{
	struct v4l2_format format = {
		.type = CAPTURE,
		.fmt.pix = { .width = width,
			     .height = height,
			     .pixelformat = fourcc,
			     .field = V4L2_FIELD_NONE },
	};
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	int error = camera_ioctl(cam, VIDIOC_S_FMT, &format, "VIDIOC_S_FMT");

	if (error)
		return error;
	if (format.fmt.pix.pixelformat != fourcc)
		return camera_fail(cam, EINVAL, "the camera has no pixel format %.4s",
				   (char *)&fourcc);
	cam->width = format.fmt.pix.width;
	cam->height = format.fmt.pix.height;
	cam->pitch = format.fmt.pix.bytesperline;
	cam->frame_size = format.fmt.pix.sizeimage;
	cam->buffer_size = (cam->frame_size + page - 1) / page * page;
	return 0;
}

/* The driver may need more buffers than @count, or grant fewer: both are errors here. */
static int request_buffers(struct camera *cam, unsigned int count, uint32_t memory)
{
	struct v4l2_requestbuffers request = { .count = count, .type = CAPTURE, .memory = memory };
	int error;

	if (!count || count > CAMERA_BUFFERS)
		return camera_fail(cam, EINVAL, "%u buffers", count);
	error = camera_ioctl(cam, VIDIOC_REQBUFS, &request, "VIDIOC_REQBUFS");
	if (error)
		return error;
	if (request.count != count)
		return camera_fail(cam, ENOBUFS, "the driver wants %u buffers, not %u",
				   request.count, count);
	cam->count = count;
	cam->memory = memory;
	return 0;
}

static int export_buffer(struct camera *cam, unsigned int index, int access)
{
	struct v4l2_exportbuffer export = {
		.type = CAPTURE,
		.index = index,
		.flags = (uint32_t)access | O_CLOEXEC,
	};
	int error = camera_ioctl(cam, VIDIOC_EXPBUF, &export, "VIDIOC_EXPBUF");

	return error ? error : export.fd;
}

int camera_export(struct camera *cam, unsigned int count, int access, int *fds)
{
	int error = request_buffers(cam, count, V4L2_MEMORY_MMAP);

	if (error)
		return error;
	for (unsigned int i = 0; i < count; i++) {
		cam->dmabuf[i] = -1;
		fds[i] = export_buffer(cam, i, access);
		if (fds[i] >= 0)
			continue;
		error = fds[i];
		while (i--)
			close(fds[i]);
		return error;
	}
	return 0;
}

int camera_import(struct camera *cam, unsigned int count, const int *fds)
{
	int error = request_buffers(cam, count, V4L2_MEMORY_DMABUF);

	if (error)
		return error;
	memcpy(cam->dmabuf, fds, count * sizeof(*fds));
	return 0;
}

int camera_queue(struct camera *cam, unsigned int index)
{
	struct v4l2_buffer buffer = { .type = CAPTURE, .memory = cam->memory, .index = index };

	if (cam->memory == V4L2_MEMORY_DMABUF) {
		buffer.m.fd = cam->dmabuf[index];
		buffer.length = (uint32_t)cam->buffer_size;
	}
	return camera_ioctl(cam, VIDIOC_QBUF, &buffer, "VIDIOC_QBUF");
}

int camera_start(struct camera *cam)
{
	int type = CAPTURE, error = 0;

	for (unsigned int i = 0; i < cam->count && !error; i++)
		error = camera_queue(cam, i);
	return error ? error : camera_ioctl(cam, VIDIOC_STREAMON, &type, "VIDIOC_STREAMON");
}

int camera_stop(struct camera *cam)
{
	int type = CAPTURE;

	return camera_ioctl(cam, VIDIOC_STREAMOFF, &type, "VIDIOC_STREAMOFF");
}

static int wait_frame(struct camera *cam, int timeout_ms)
{
	struct pollfd pollfd = { .fd = cam->fd, .events = POLLIN };
	int ready;

	do
		ready = poll(&pollfd, 1, timeout_ms);
	while (ready < 0 && errno == EINTR);
	if (ready < 0)
		return camera_fail(cam, errno, "poll");
	return ready ? 0 : camera_fail(cam, ETIMEDOUT, "no frame in %d ms", timeout_ms);
}

int camera_dequeue(struct camera *cam, int timeout_ms, unsigned int *index, unsigned int *sequence)
{
	struct v4l2_buffer buffer = { .type = CAPTURE, .memory = cam->memory };
	int error = wait_frame(cam, timeout_ms);

	if (!error)
		error = camera_ioctl(cam, VIDIOC_DQBUF, &buffer, "VIDIOC_DQBUF");
	if (error)
		return error;
	if (buffer.flags & V4L2_BUF_FLAG_ERROR) {
		camera_queue(cam, buffer.index);
		return camera_fail(cam, EIO, "frame %u was captured with an error",
				   buffer.sequence);
	}
	*index = buffer.index;
	if (sequence)
		*sequence = buffer.sequence;
	return 0;
}
