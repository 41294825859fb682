# SPDX-License-Identifier: Apache-2.0
"""The tables of tests/drivers/run: userlands, drivers, loaders, and known faults of drivers."""
import collections
import re

# Packages of a Debian release, unpacked with all that the packages depend on.
TOOLS = ["ocl-icd-libopencl1", "libdrm2"]
USERLANDS = {
    "bookworm": ["pocl-opencl-icd", "mesa-opencl-icd", "oclgrind", *TOOLS],
    "trixie": ["pocl-opencl-icd", "mesa-opencl-icd", *TOOLS],
    "sid": ["pocl-opencl-icd", "mesa-opencl-icd", "mesa-vulkan-drivers", *TOOLS],
}
KHRONOS = ("sid", "khronos-opencl-icd-libopencl1")

# Intel's runtime for CPUs: PyPI's wheels, of which nothing is installed.
INTEL = {
    "2026.2.0": ["intel-opencl-rt==2026.2.0", "intel-cmplr-lib-rt==2026.2.0", "tbb==2023.2.0"],
    "2025.3.3": ["intel-opencl-rt==2025.3.3", "intel-cmplr-lib-rt==2025.3.3", "tbb==2022.3.1"],
    "2023.2.4": ["intel-opencl-rt==2023.2.4", "intel-cmplr-lib-rt==2023.2.4", "tbb==2021.13.1"],
}

# @vendor: the file of /etc/OpenCL/vendors, or the folder of Intel's wheels.  @platform: a part of the
# platform's name.  @loaders: "ocl-icd" is the userland's.  @seconds: how long a suite may take.  @test_seconds:
# how long a test may take on the host.
Driver = collections.namedtuple("Driver", "name userland vendor platform env loaders seconds test_seconds",
                                defaults=[900, 60])

LLVMPIPE = {"RUSTICL_ENABLE": "llvmpipe"}
ZINK = {"RUSTICL_ENABLE": "swrast", "GALLIUM_DRIVER": "zink", "LIBGL_ALWAYS_SOFTWARE": "1",
        "VK_DRIVER_FILES": "/usr/share/vulkan/icd.d/lvp_icd.json"}
BOTH = ("ocl-icd", "Khronos")

# The versions of Debian's drivers are the archive's of the day: the results have them.
DRIVERS = [
    Driver("PoCL, bookworm", "bookworm", "pocl.icd", "Portable", {}, ("ocl-icd",)),
    Driver("PoCL, trixie", "trixie", "pocl.icd", "Portable", {}, BOTH),
    Driver("PoCL, sid", "sid", "pocl.icd", "Portable", {}, BOTH),
    Driver("rusticl on llvmpipe, bookworm", "bookworm", "rusticl.icd", "rusticl", LLVMPIPE, ("ocl-icd",)),
    Driver("rusticl on llvmpipe, trixie", "trixie", "rusticl.icd", "rusticl", LLVMPIPE, BOTH),
    Driver("rusticl on llvmpipe, sid", "sid", "rusticl.icd", "rusticl", LLVMPIPE, BOTH),
    Driver("rusticl on zink on lavapipe, sid", "sid", "rusticl.icd", "rusticl", ZINK, BOTH),
    Driver("Oclgrind, bookworm", "bookworm", "/usr/lib/oclgrind/liboclgrind-rt-icd.so", "Oclgrind", {},
           ("ocl-icd",), 7200, 15), # Oclgrind interprets kernels, and hangs in 20 tests
    Driver("Intel's CPU runtime 2023.2.4", "trixie", "2023.2.4", "Intel", {}, BOTH),
    Driver("Intel's CPU runtime 2025.3.3", "trixie", "2025.3.3", "Intel", {}, BOTH),
    Driver("Intel's CPU runtime 2026.2.0", "trixie", "2026.2.0", "Intel", {}, BOTH),
]

# Columns of the table.  The first row whose pattern is found in a test's name, or in the name of its file,
# counts.
COLUMNS = [
    ("dma-buf, Khronos", r"^external_"),
    ("1D image", r"image_1d|image1d"),
    ("2D image", r"image"),
    ("sub-buffer", r"sub_buffer"),
    ("dma-buf", r"dma_buf|descriptor"),
    ("host memory", r"\bhost|zero_copy|malloc"),
    ("buffer", r""),
]


class Known(collections.namedtuple("Known", "driver test proof cause fault again", defaults=["", ()])):
    """A fault of a driver.

    @driver, @test and @fault are patterns: of the driver's name, of the whole name of the test, and of what
    the test says, with OpenCL's last call.  @proof: the test of tests/drivers/plain.c that fails on the
    driver, without the layer.  @again: variables with which the suite runs the test again, and finds that
    the driver does the same with its own buffers.
    """

    def explains(self, test, fault):
        return re.fullmatch(self.test, test) and re.search(self.fault, fault)


# Behind each mapping lies a hole: what a driver reads there is not left to chance.
HOLES = (("LD_PRELOAD", "{build}/tests/drivers/libdriver_page_behind.so"), ("DRIVER_BEHIND", "hole"))

KNOWN = [
    Known("rusticl", "event_callback_of_.*", "queue_after_failed_wait",
          "rusticl's queue ends with a command whose wait list failed: the next test needs a new process"),
    Known("llvmpipe, bookworm", "event_times_.*", "event_times",
          "rusticl of Mesa 22.3.6 gives times of events in the wrong order", "before <= "),
    Known("rusticl", "sub_buffer_with_origin_.*", "sub_buffer_origin",
          "rusticl before Mesa 26 makes sub-buffers at misaligned origins", "error is 0"),
    Known("rusticl", "external_host_access_copy_sub_buffer_to_plain_image", "copy_sub_buffer_to_image",
          "rusticl adds the origin of a sub-buffer twice where an image is the destination"),
    Known("rusticl.*trixie", "external_host_access_copy_image_.*to_plain_buffer", "copy_image_to_offset",
          "rusticl of Mesa 25 multiplies the offset of clEnqueueCopyImageToBuffer by the size of a pixel"),
    Known("rusticl.*sid", "external_host_access_copy_rect_.*sub_buffer", "copy_rect_of_sub_buffer",
          "rusticl of Mesa 26.2 takes the origin of the source's sub-buffer for the destination's, too, and writes outside of buffers"),
    Known("rusticl.*sid", "external_host_access_copy_image_of_sub_to_plain_buffer", "copy_image_of_sub_buffer", "as above"),
    Known("rusticl.*sid", "external_host_access_copy_plain_buffer_to_image.*", "copy_to_image_of_buffer",
          "rusticl of Mesa 26.2 copies to an image of a buffer as many bytes of a row as the row has pixels"),
    Known("rusticl.*sid", "external_host_access_copy_from_image(_of_sub)?", "copy_image_of_buffer",
          "rusticl of Mesa 26.2 copies images of buffers as if their rows had no padding"),
    Known("rusticl.*sid", "external_host_access_copy_to_image(_of_sub)?", "copy_image_to_image_of_buffer", "as above"),
    Known("Intel", "ffmpeg_maps_.*|camera_ring|spacemit_frames_.*", "plane",
          "the runtime of 2023, and on the guest's processor each other too, read images of one channel wrongly "
          "(read_imagef without a sampler)"),
    Known("Intel", "failed_wait_list_of_.*|external_list_fails_of_.*", "failed_wait",
          "Intel's runtime calls a command complete whose wait list failed", "event_status|command_status"),
    Known("Intel", "external_times_of_.*", "marker_times",
          "Intel's runtime gives times of markers in the wrong order", "times"),
    Known("Intel", ".*", "read_only_image", "Intel's runtime copies an image of a read-only buffer that begins within a page: such "
          "images of imports are refused", "is -59, expected 0"),
    Known("Intel.*2023", "no_memory_for_copies_of_many_parts_of_a_page", "object_memory",
          "the runtime of 2023 takes more memory for a buffer than half of the page that the buffer is in", "copies_peak"),
    Known("Intel.*202[56]", "no_memory_for_copies_of_many_parts_of_a_page", "callback_memory",
          "Intel's runtime takes 4 KiB for each destructor callback of a memory object", "copies_peak"),
    Known("zink", ".*", "image_of_buffer",
          "zink on lavapipe aborts where a kernel uses an image of a buffer: a self-test in a child process sees that, "
          "and images of imports are refused", "is -59, expected 0"),
    Known("zink", ".*", "image_shows_writes",
          "on the guest's processor a kernel reads zeros from an image of a buffer instead of the buffer's bytes: "
          "images of imports are refused", "is -59, expected 0"),
    Known("zink", "ffmpeg_maps_.*|camera_ring|spacemit_frames_.*", "image_of_buffer",
          "as above", "err is -59, expected 0"),
    Known("zink", "ffmpeg_maps_.*|camera_ring|spacemit_frames_.*|read_only_image_2d", "tight_rows",
          "rows of zink's images of buffers are multiples of 256 pixels", "err(or)? is -65, expected 0"),
    Known("rusticl.*sid", ".*", "hole_behind", "llvmpipe of Mesa 26.2 reads behind a buffer's last byte, and dies if no page "
          "is there: which tests die depends on their neighbours in memory", "Segmentation fault", HOLES),
    Known("rusticl.*sid", "threads_with_.*", "threads", "rusticl of Mesa 26.2 spoils the heap where several threads use it, and aborts", "Aborted"),
    Known("zink", "no_page_beyond_the_touched_pages", "hole_behind", "as above: the test has a hole there",
          "Segmentation fault, in clFinish"),
    Known("Oclgrind", "sub_buffer_with_more_access", "sub_buffer_access",
          "Oclgrind lets a sub-buffer be written whose buffer is read-only"),
    Known("Oclgrind", "destructor_callback_of_a_sub_buffer", "callback_order",
          "Oclgrind calls the callback of a buffer before that of the buffer's sub-buffer", "number is 2"),
    Known("Oclgrind", "inherited_flags_of_image_1d", "image_1d_flags",
          "Oclgrind calls a 1D image read-write that was made read-only, of a buffer that can be written", "is 1, expected 4"),
    Known("Oclgrind", "failed_wait_list_of_.*|event_as_a_wait_list_of_.*", "flush_with_gate",
          "Oclgrind's clFlush runs each command to the end, and hangs if a command waits for a user event", ", in clFlush"),
    Known("Oclgrind", "sub_buffer_with_size_0", "sub_buffer_size_0",
          "Oclgrind calls a sub-buffer of size 0 CL_INVALID_VALUE instead of CL_INVALID_BUFFER_SIZE", "error is -30"),
    Known("Oclgrind", "image_1d_longer_than_the_import", "image_1d_length",
          "Oclgrind makes 1D images that are longer than their buffer"),
]
