// SPDX-License-Identifier: Apache-2.0
// A video filter with OpenCV: gpu_opencv [--seconds N]
//
// Frames in the host's memory, which OpenCV gives to OpenCL with CL_MEM_USE_HOST_PTR (Mat::getUMat), are
// filtered on the device, and results come back into the host's memory.  Without an argument: a sum for
// each of eight small frames.  With --seconds: frames a second for N seconds of each size, and the sum of
// the first frames, as gpu_stream prints them.  The time in which the CPU draws a frame does not count.
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include <opencv2/core.hpp>
#include <opencv2/core/ocl.hpp>
#include <opencv2/imgproc.hpp>

enum { FRAMES = 8, WARM = 3 };

static const struct opencv_size {
	const char *name;
	int width, height;
} opencv_sizes[] = {
	{ "OpenCV, blur and edges, 640x360", 640, 360 },
	{ "OpenCV, blur and edges, 1080p", 1920, 1080 },
	{ "OpenCV, blur and edges, 4K", 3840, 2160 },
};

static void opencv_filter(const cv::UMat &from, cv::UMat &to)
{
	cv::UMat smooth, edges;

	cv::GaussianBlur(from, smooth, cv::Size(5, 5), 1.5);
	cv::Sobel(smooth, edges, CV_8U, 1, 0);
	cv::threshold(edges, to, 20, 255, cv::THRESH_BINARY);
}

static unsigned opencv_sum(const cv::Mat &picture)
{
	unsigned hash = 2166136261u;

	for (int y = 0; y < picture.rows; y++)
		for (int x = 0; x < picture.cols; x++)
			hash = (hash ^ picture.at<unsigned char>(y, x)) * 16777619u;
	return hash;
}

// A camera's frame begins at a page.
static cv::Mat opencv_create(int width, int height)
{
	return cv::Mat(
		height, width, CV_8UC1,
		aligned_alloc(4096, (static_cast<size_t>(width) * height + 4095) / 4096 * 4096));
}

// The end of the UMats brings the results into the memory.
static void opencv_process(const cv::Mat &from, const cv::Mat &to)
{
	cv::UMat in = from.getUMat(cv::ACCESS_READ), out = to.getUMat(cv::ACCESS_RW);

	opencv_filter(in, out);
}

static void opencv_print_sums()
{
	cv::Mat from = opencv_create(640, 360), to = opencv_create(640, 360);

	for (int i = 0; i < FRAMES; i++) {
		cv::randu(from, 0, 255);
		to.setTo(0);
		opencv_process(from, to);
		printf("frame %d: %d bright, %08x\n", i, cv::countNonZero(to), opencv_sum(to));
	}
	free(from.data);
	free(to.data);
}

static void opencv_measure(const struct opencv_size *size, double seconds)
{
	cv::Mat from = opencv_create(size->width, size->height),
		to = opencv_create(size->width, size->height);
	unsigned total = 0;
	double counted = 0;
	int frame = 0;

	while (frame < FRAMES || counted < seconds) {
		if (frame < FRAMES) // a later frame is the last of them
			cv::randu(from, 0, 255);
		const int64_t begin = cv::getTickCount();
		opencv_process(from, to);
		if (frame >= WARM)
			counted += static_cast<double>(cv::getTickCount() - begin) /
				   cv::getTickFrequency();
		if (frame < FRAMES)
			total = total * 17 + opencv_sum(to);
		frame++;
	}
	printf("%s: %.1f frames a second, sum %08x\n", size->name, (frame - WARM) / counted, total);
	free(from.data);
	free(to.data);
}

int main(int argc, char **argv)
{
	if (!cv::ocl::haveOpenCL() || !cv::ocl::Device::getDefault().available())
		return puts("OpenCV found no OpenCL device"), 1;
	cv::ocl::setUseOpenCL(true);
	cv::theRNG().state = 1;
	setvbuf(stdout, NULL, _IOLBF, 0);
	if (argc == 3 && !strcmp(argv[1], "--seconds"))
		for (const struct opencv_size &size : opencv_sizes)
			opencv_measure(&size, atof(argv[2]));
	else
		opencv_print_sums();
	return 0;
}
