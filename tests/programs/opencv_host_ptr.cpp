// SPDX-License-Identifier: Apache-2.0
// A video filter with OpenCV: frames in the host's memory, which OpenCV gives to OpenCL with
// CL_MEM_USE_HOST_PTR (Mat::getUMat), are filtered on the device, and results come back into the host's
// memory.  Prints a sum for each frame.
#include <cstdio>
#include <cstdlib>

#include <opencv2/core.hpp>
#include <opencv2/core/ocl.hpp>
#include <opencv2/imgproc.hpp>

enum { WIDTH = 640, HEIGHT = 360, FRAMES = 8 };

static void filter(const cv::UMat &from, cv::UMat &to)
{
	cv::UMat smooth, edges;

	cv::GaussianBlur(from, smooth, cv::Size(5, 5), 1.5);
	cv::Sobel(smooth, edges, CV_8U, 1, 0);
	cv::threshold(edges, to, 20, 255, cv::THRESH_BINARY);
}

static unsigned sum(const cv::Mat &picture)
{
	unsigned hash = 2166136261u;

	for (int y = 0; y < picture.rows; y++)
		for (int x = 0; x < picture.cols; x++)
			hash = (hash ^ picture.at<unsigned char>(y, x)) * 16777619u;
	return hash;
}

// A camera's frame begins at a page.
static cv::Mat frame_create()
{
	return cv::Mat(HEIGHT, WIDTH, CV_8UC1,
		       aligned_alloc(4096, (WIDTH * HEIGHT + 4095) / 4096 * 4096));
}

int main()
{
	if (!cv::ocl::haveOpenCL() || !cv::ocl::Device::getDefault().available())
		return puts("OpenCV found no OpenCL device"), 1;
	cv::ocl::setUseOpenCL(true);
	cv::theRNG().state = 1;
	cv::Mat from = frame_create(), to = frame_create();
	for (int i = 0; i < FRAMES; i++) {
		cv::randu(from, 0, 255);
		to.setTo(0);
		{
			cv::UMat in = from.getUMat(cv::ACCESS_READ),
				 out = to.getUMat(cv::ACCESS_RW);

			filter(in, out);
		} // the end of the UMats brings the results into the memory
		printf("frame %d: %d bright, %08x\n", i, cv::countNonZero(to), sum(to));
	}
	return 0;
}
