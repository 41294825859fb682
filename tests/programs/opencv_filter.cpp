// SPDX-License-Identifier: Apache-2.0
// OpenCV's own OpenCL kernels: filters of a UMat give what the same filters of a Mat give.
#include <cstdio>

#include <opencv2/core.hpp>
#include <opencv2/core/ocl.hpp>
#include <opencv2/imgproc.hpp>

template <typename Image> static void filter(const Image &from, Image &to)
{
	Image smooth, edges;

	cv::GaussianBlur(from, smooth, cv::Size(5, 5), 1.5);
	cv::Sobel(smooth, edges, CV_8U, 1, 0);
	cv::threshold(edges, to, 20, 255, cv::THRESH_BINARY);
}

int main()
{
	cv::Mat picture(240, 320, CV_8UC1), expected, got;
	cv::UMat on_device, result;

	if (!cv::ocl::haveOpenCL() || !cv::ocl::Device::getDefault().available())
		return puts("OpenCV found no OpenCL device"), 1;
	cv::ocl::setUseOpenCL(true);
	printf("%s\n", cv::ocl::Device::getDefault().name().c_str());
	cv::theRNG().state = 1;
	cv::randu(picture, 0, 255);
	picture.copyTo(on_device);
	filter(on_device, result);
	result.copyTo(got);
	cv::ocl::setUseOpenCL(false);
	filter(picture, expected);
	// The device rounds in its own way: a pixel at the threshold may fall on either side.
	printf("%d of %d pixels, %s\n", cv::countNonZero(got), got.rows * got.cols,
	       cv::norm(got, expected, cv::NORM_L1) <= 255 * 400 ? "alike" : "another picture");
	return 0;
}
