/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The mutants.  Each row begins with the mutant's name; the version of the extension that the mutant
 * pretends to be (V10, V11); where the run needs POCL or, for dma-bufs, the GUEST, or for Khronos' FAKE ones; and a sentence
 * about what is wrong.  A file that includes the list defines the macros that the file needs.  The
 * rest of a row is data for the file that makes the fault:
 *
 *	USE(..., call, when, action)	enqueue.c: a command on an object goes wrong
 *	IMPORT(..., when, outcome)	import.c: an import ends with another error, CL_SUCCESS if
 *					the driver accepts what is to be refused
 *	COPY(..., when, how)		shadow.c: the import is a copy
 *	QUERY(..., shapes, param, answer)	query.c: a wrong answer
 *	EXTERNAL(..., is_command, from, to)	external.c: an error becomes another
 *	OTHER(...)			code that asks for the mutant by name
 */

#ifndef USE
#define USE(...)
#endif
#ifndef IMPORT
#define IMPORT(...)
#endif
#ifndef COPY
#define COPY(...)
#endif
#ifndef QUERY
#define QUERY(...)
#endif
#ifndef EXTERNAL
#define EXTERNAL(...)
#endif
#ifndef OTHER
#define OTHER(...)
#endif

/* Version 1.0.0 forbids sixteen calls.  Here one of them works. */
USE(read_buffer_works, V10, POCL, "clEnqueueReadBuffer works", clEnqueueReadBuffer, ALWAYS, WORKS)
USE(write_buffer_works, V10, POCL, "clEnqueueWriteBuffer works", clEnqueueWriteBuffer, ALWAYS,
    WORKS)
USE(read_rect_works, V10, POCL, "clEnqueueReadBufferRect works", clEnqueueReadBufferRect, ALWAYS,
    WORKS)
USE(write_rect_works, V10, POCL, "clEnqueueWriteBufferRect works", clEnqueueWriteBufferRect, ALWAYS,
    WORKS)
USE(copy_buffer_works, V10, POCL, "clEnqueueCopyBuffer works", clEnqueueCopyBuffer, ALWAYS, WORKS)
USE(copy_rect_works, V10, POCL, "clEnqueueCopyBufferRect works", clEnqueueCopyBufferRect, ALWAYS,
    WORKS)
USE(fill_buffer_works, V10, POCL, "clEnqueueFillBuffer works", clEnqueueFillBuffer, ALWAYS, WORKS)
USE(read_image_works, V10, POCL, "clEnqueueReadImage works", clEnqueueReadImage, ALWAYS, WORKS)
USE(write_image_works, V10, POCL, "clEnqueueWriteImage works", clEnqueueWriteImage, ALWAYS, WORKS)
USE(copy_image_works, V10, POCL, "clEnqueueCopyImage works", clEnqueueCopyImage, ALWAYS, WORKS)
USE(image_to_buffer_works, V10, POCL, "clEnqueueCopyImageToBuffer works",
    clEnqueueCopyImageToBuffer, ALWAYS, WORKS)
USE(buffer_to_image_works, V10, POCL, "clEnqueueCopyBufferToImage works",
    clEnqueueCopyBufferToImage, ALWAYS, WORKS)
USE(fill_image_works, V10, POCL, "clEnqueueFillImage works", clEnqueueFillImage, ALWAYS, WORKS)
USE(unmap_works, V10, POCL, "clEnqueueUnmapMemObject succeeds", clEnqueueUnmapMemObject, ALWAYS,
    SKIPPED)
USE(map_buffer_works, V10, POCL, "clEnqueueMapBuffer works", clEnqueueMapBuffer, ALWAYS, WORKS)
USE(map_image_works, V10, POCL, "clEnqueueMapImage works", clEnqueueMapImage, ALWAYS, WORKS)

/* The sixteen calls are refused but in one case. */
USE(works_blocking, V10, POCL, "the calls work if they block", SIXTEEN, BLOCKING, WORKS)
USE(works_not_blocking, V10, POCL, "the calls work if they do not block", SIXTEEN,
    NOT_BLOCKING_CALL, WORKS)
USE(works_read_not_blocking, V10, POCL, "clEnqueueReadBuffer works without blocking",
    clEnqueueReadBuffer, NOT_BLOCKING_CALL, WORKS)
USE(works_write_not_blocking, V10, POCL, "clEnqueueWriteBuffer works without blocking",
    clEnqueueWriteBuffer, NOT_BLOCKING_CALL, WORKS)
USE(works_read_rect_not_blocking, V10, POCL, "clEnqueueReadBufferRect works without blocking",
    clEnqueueReadBufferRect, NOT_BLOCKING_CALL, WORKS)
USE(works_map_not_blocking, V10, POCL, "clEnqueueMapBuffer works without blocking",
    clEnqueueMapBuffer, NOT_BLOCKING_CALL, WORKS)
USE(works_map_image_not_blocking, V10, POCL, "clEnqueueMapImage works without blocking",
    clEnqueueMapImage, NOT_BLOCKING_CALL, WORKS)
USE(works_read_image_not_blocking, V10, POCL, "clEnqueueReadImage works without blocking",
    clEnqueueReadImage, NOT_BLOCKING_CALL, WORKS)
USE(works_write_image_not_blocking, V10, POCL, "clEnqueueWriteImage works without blocking",
    clEnqueueWriteImage, NOT_BLOCKING_CALL, WORKS)
USE(works_with_wait_list, V10, POCL, "the calls work with a wait list", SIXTEEN, WITH_WAIT_LIST,
    WORKS)
USE(works_copy_with_wait_list, V10, POCL, "clEnqueueCopyBuffer works with a wait list",
    clEnqueueCopyBuffer, WITH_WAIT_LIST, WORKS)
USE(works_fill_with_wait_list, V10, POCL, "clEnqueueFillBuffer works with a wait list",
    clEnqueueFillBuffer, WITH_WAIT_LIST, WORKS)
USE(works_unmap_with_wait_list, V10, POCL, "clEnqueueUnmapMemObject succeeds with a wait list",
    clEnqueueUnmapMemObject, WITH_WAIT_LIST, SKIPPED)
USE(works_without_event, V10, POCL, "the calls work if no event is asked for", SIXTEEN,
    WITHOUT_EVENT, WORKS)
USE(works_copy_without_event, V10, POCL, "clEnqueueCopyBuffer works if no event is asked for",
    clEnqueueCopyBuffer, WITHOUT_EVENT, WORKS)
USE(works_with_event, V10, POCL, "the calls work if an event is asked for", SIXTEEN, WITH_EVENT,
    WORKS)
USE(works_on_sub_buffers, V10, POCL, "the calls work on sub-buffers", SIXTEEN, ON_SUB_BUFFER, WORKS)
USE(works_copy_of_sub_buffers, V10, POCL, "clEnqueueCopyBuffer works on sub-buffers",
    clEnqueueCopyBuffer, ON_SUB_BUFFER, WORKS)
USE(works_fill_of_sub_buffers, V10, POCL, "clEnqueueFillBuffer works on sub-buffers",
    clEnqueueFillBuffer, ON_SUB_BUFFER, WORKS)
USE(works_map_of_sub_buffers, V10, POCL, "clEnqueueMapBuffer works on sub-buffers",
    clEnqueueMapBuffer, ON_SUB_BUFFER, WORKS)
USE(works_on_images, V10, POCL, "the calls work on images", SIXTEEN, ON_IMAGE, WORKS)
USE(works_on_1d_images, V10, POCL, "the calls work on 1D images", SIXTEEN, ON_IMAGE_1D, WORKS)
USE(works_fill_of_1d_images, V10, POCL, "clEnqueueFillImage works on 1D images", clEnqueueFillImage,
    ON_IMAGE_1D, WORKS)
USE(works_copy_of_1d_images, V10, POCL, "clEnqueueCopyImage works on 1D images", clEnqueueCopyImage,
    ON_IMAGE_1D, WORKS)
USE(works_on_images_of_sub_buffers, V10, POCL, "the calls work on images of sub-buffers", SIXTEEN,
    ON_IMAGE_OF_SUB_BUFFER, WORKS)
USE(works_on_images_by_properties, V10, POCL,
    "the calls work on images of clCreateImageWithProperties", SIXTEEN, ON_IMAGE_BY_PROPERTIES,
    WORKS)
USE(works_on_the_second_queue, V10, POCL, "the calls work on queues but the first", SIXTEEN,
    ON_SECOND_QUEUE, WORKS)
USE(works_copy_on_the_second_queue, V10, POCL, "clEnqueueCopyBuffer works on queues but the first",
    clEnqueueCopyBuffer, ON_SECOND_QUEUE, WORKS)
USE(works_map_on_the_second_queue, V10, POCL, "clEnqueueMapBuffer works on queues but the first",
    clEnqueueMapBuffer, ON_SECOND_QUEUE, WORKS)
USE(works_out_of_order, V10, POCL, "the calls work on out-of-order queues", SIXTEEN,
    ON_OUT_OF_ORDER, WORKS)
USE(works_with_profiling, V10, POCL, "the calls work on queues with profiling", SIXTEEN,
    ON_PROFILING, WORKS)
USE(works_with_an_offset, V10, POCL, "the calls work if an offset is not 0", SIXTEEN, WITH_OFFSET,
    WORKS)
USE(works_with_one_byte, V10, POCL, "the calls work for one byte", SIXTEEN, WITH_ONE_BYTE, WORKS)
USE(works_on_read_only, V10, POCL, "the calls work on CL_MEM_READ_ONLY imports", SIXTEEN,
    ON_READ_ONLY, WORKS)
USE(works_on_write_only, V10, POCL, "the calls work on CL_MEM_WRITE_ONLY imports", SIXTEEN,
    ON_WRITE_ONLY, WORKS)
USE(works_on_host_flags, V10, POCL, "the calls work on imports with a host access flag", SIXTEEN,
    ON_HOST_FLAGS, WORKS)
USE(works_on_use_host_ptr, V10, POCL, "the calls work on imports with CL_MEM_USE_HOST_PTR", SIXTEEN,
    ON_USE_HOST_PTR, WORKS)
USE(works_when_retained, V10, POCL, "the calls work on retained imports", SIXTEEN, ON_RETAINED,
    WORKS)
USE(works_when_parent_is_released, V10, POCL, "the calls work on objects whose import is released",
    SIXTEEN, ON_ORPHAN, WORKS)
USE(works_between_imports, V10, POCL, "copies work between two imports", SIXTEEN, BETWEEN_IMPORTS,
    WORKS)
USE(works_from_imports, V10, POCL, "copies work from an import", SIXTEEN, FROM_IMPORT_TO_PLAIN,
    WORKS)
USE(works_to_imports, V10, POCL, "copies work to an import", SIXTEEN, FROM_PLAIN_TO_IMPORT, WORKS)
USE(works_rect_to_imports, V10, POCL, "clEnqueueCopyBufferRect works to an import",
    clEnqueueCopyBufferRect, FROM_PLAIN_TO_IMPORT, WORKS)
USE(works_image_to_imports, V10, POCL, "clEnqueueCopyImageToBuffer works to an import",
    clEnqueueCopyImageToBuffer, FROM_PLAIN_TO_IMPORT, WORKS)
USE(works_on_the_second_import, V10, POCL, "the calls work on all imports but the first", SIXTEEN,
    ON_SECOND_IMPORT, WORKS)
USE(works_on_unaligned, V10, POCL, "the calls work on imports that do not begin a page", SIXTEEN,
    ON_UNALIGNED, WORKS)
USE(works_on_large, V10, POCL, "the calls work on imports of 64 KiB and more", SIXTEEN, ON_LARGE,
    WORKS)
USE(works_in_the_second_context, V10, POCL, "the calls work in a second context", SIXTEEN,
    IN_SECOND_CONTEXT, WORKS)
USE(works_on_other_threads, V10, POCL, "the calls work on other threads", SIXTEEN, ON_OTHER_THREAD,
    WORKS)
USE(works_after_a_kernel, V10, POCL, "the calls work once a kernel has used the import", SIXTEEN,
    AFTER_A_KERNEL, WORKS)
USE(works_map_to_invalidate, V10, POCL, "maps with CL_MAP_WRITE_INVALIDATE_REGION work", SIXTEEN,
    MAP_INVALIDATES, WORKS)
USE(works_map_to_read, V10, POCL, "maps with CL_MAP_READ alone work", SIXTEEN, MAP_READS, WORKS)
USE(works_on_dma_bufs, V10, GUEST, "the calls work on imported dma-bufs", SIXTEEN, ON_DMA_BUF,
    WORKS)

/* Refused with another error, or refused in part. */
USE(refused_as_value, V10, POCL, "the calls end with CL_INVALID_VALUE", SIXTEEN, ALWAYS,
    CL_INVALID_VALUE)
USE(refused_as_mem_object, V10, POCL, "the calls on images end with CL_INVALID_MEM_OBJECT", SIXTEEN,
    ON_IMAGE, CL_INVALID_MEM_OBJECT)
USE(refused_map_as_map_failure, V10, POCL, "clEnqueueMapBuffer ends with CL_MAP_FAILURE",
    clEnqueueMapBuffer, ALWAYS, CL_MAP_FAILURE)
USE(refused_unmap_as_value, V10, POCL, "clEnqueueUnmapMemObject ends with CL_INVALID_VALUE",
    clEnqueueUnmapMemObject, ALWAYS, CL_INVALID_VALUE)
USE(refused_overlap, V10, POCL, "a copy between imports ends with CL_MEM_COPY_OVERLAP", SIXTEEN,
    BETWEEN_IMPORTS, CL_MEM_COPY_OVERLAP)
USE(refused_not_blocking_as_resources, V10, POCL,
    "calls that do not block end with CL_OUT_OF_RESOURCES", SIXTEEN, NOT_BLOCKING_CALL,
    CL_OUT_OF_RESOURCES)
USE(refused_with_wait_list_as_wait_list, V10, POCL,
    "calls with a wait list end with CL_INVALID_EVENT_WAIT_LIST", SIXTEEN, WITH_WAIT_LIST,
    CL_INVALID_EVENT_WAIT_LIST)
USE(refused_second_queue_as_context, V10, POCL,
    "calls on a second queue end with CL_INVALID_CONTEXT", SIXTEEN, ON_SECOND_QUEUE,
    CL_INVALID_CONTEXT)
USE(refused_silently, V10, POCL, "the calls return CL_SUCCESS and do nothing", SIXTEEN, ALWAYS,
    SKIPPED)
USE(refused_after_the_write, V10, POCL, "clEnqueueWriteBuffer writes and returns the error",
    clEnqueueWriteBuffer, ALWAYS, WORKS_AND_FAILS)
USE(refused_after_the_read, V10, POCL, "clEnqueueReadBuffer reads and returns the error",
    clEnqueueReadBuffer, ALWAYS, WORKS_AND_FAILS)
USE(refused_after_the_fill, V10, POCL, "clEnqueueFillBuffer fills and returns the error",
    clEnqueueFillBuffer, ALWAYS, WORKS_AND_FAILS)
USE(refused_after_the_copy, V10, POCL, "copies are made and return the error", SIXTEEN,
    FROM_IMPORT_TO_PLAIN, WORKS_AND_FAILS)
USE(refused_after_the_image_write, V10, POCL, "clEnqueueWriteImage writes and returns the error",
    clEnqueueWriteImage, ALWAYS, WORKS_AND_FAILS)
USE(refused_with_an_event, V10, POCL, "the refused calls return an event", SIXTEEN, ALWAYS,
    EVENT_ON_ERROR)
USE(refused_map_with_a_pointer, V10, POCL, "the refused maps return a pointer", SIXTEEN, MAPS,
    POINTER_ON_ERROR)
USE(refused_map_without_a_code, V10, POCL, "the refused maps do not write errcode_ret", SIXTEEN,
    MAPS, NO_CODE)
USE(plain_buffers_refused, V10, POCL,
    "the calls fail on plain buffers, too, while an import is alive", clEnqueueReadBuffer, ON_PLAIN,
    CL_INVALID_OPERATION)
USE(plain_copies_refused, V10, POCL, "copies of plain buffers fail while an import is alive",
    clEnqueueCopyBuffer, ON_PLAIN, CL_INVALID_OPERATION)
USE(plain_maps_refused, V10, POCL, "maps of plain buffers fail while an import is alive",
    clEnqueueMapBuffer, ON_PLAIN, CL_INVALID_OPERATION)
OTHER(freed_handles_refused, V10, POCL,
      "a plain buffer at the address of a released import is refused")

/* Version 1.1.0: the calls work.  Here one does not. */
USE(read_buffer_refused, V11, POCL, "clEnqueueReadBuffer fails", clEnqueueReadBuffer, ALWAYS,
    CL_INVALID_OPERATION)
USE(write_buffer_refused, V11, POCL, "clEnqueueWriteBuffer fails", clEnqueueWriteBuffer, ALWAYS,
    CL_INVALID_OPERATION)
USE(read_rect_refused, V11, POCL, "clEnqueueReadBufferRect fails", clEnqueueReadBufferRect, ALWAYS,
    CL_INVALID_OPERATION)
USE(write_rect_refused, V11, POCL, "clEnqueueWriteBufferRect fails", clEnqueueWriteBufferRect,
    ALWAYS, CL_INVALID_OPERATION)
USE(copy_buffer_refused, V11, POCL, "clEnqueueCopyBuffer fails", clEnqueueCopyBuffer, ALWAYS,
    CL_INVALID_OPERATION)
USE(copy_rect_refused, V11, POCL, "clEnqueueCopyBufferRect fails", clEnqueueCopyBufferRect, ALWAYS,
    CL_INVALID_OPERATION)
USE(fill_buffer_refused, V11, POCL, "clEnqueueFillBuffer fails", clEnqueueFillBuffer, ALWAYS,
    CL_INVALID_OPERATION)
USE(read_image_refused, V11, POCL, "clEnqueueReadImage fails", clEnqueueReadImage, ALWAYS,
    CL_INVALID_OPERATION)
USE(write_image_refused, V11, POCL, "clEnqueueWriteImage fails", clEnqueueWriteImage, ALWAYS,
    CL_INVALID_OPERATION)
USE(copy_image_refused, V11, POCL, "clEnqueueCopyImage fails", clEnqueueCopyImage, ALWAYS,
    CL_INVALID_OPERATION)
USE(image_to_buffer_refused, V11, POCL, "clEnqueueCopyImageToBuffer fails",
    clEnqueueCopyImageToBuffer, ALWAYS, CL_INVALID_OPERATION)
USE(buffer_to_image_refused, V11, POCL, "clEnqueueCopyBufferToImage fails",
    clEnqueueCopyBufferToImage, ALWAYS, CL_INVALID_OPERATION)
USE(fill_image_refused, V11, POCL, "clEnqueueFillImage fails", clEnqueueFillImage, ALWAYS,
    CL_INVALID_OPERATION)
USE(unmap_refused, V11, POCL, "clEnqueueUnmapMemObject fails", clEnqueueUnmapMemObject, ALWAYS,
    CL_INVALID_OPERATION)
USE(map_buffer_refused, V11, POCL, "clEnqueueMapBuffer fails", clEnqueueMapBuffer, ALWAYS,
    CL_INVALID_OPERATION)
USE(map_image_refused, V11, POCL, "clEnqueueMapImage fails", clEnqueueMapImage, ALWAYS,
    CL_INVALID_OPERATION)
USE(not_blocking_refused, V11, POCL, "calls that do not block fail", SIXTEEN, NOT_BLOCKING_CALL,
    CL_INVALID_OPERATION)
USE(wait_list_refused, V11, POCL, "calls with a wait list fail", SIXTEEN, WITH_WAIT_LIST,
    CL_INVALID_OPERATION)
USE(second_queue_refused, V11, POCL, "calls on a second queue fail", SIXTEEN, ON_SECOND_QUEUE,
    CL_INVALID_OPERATION)
USE(out_of_order_refused, V11, POCL, "calls on an out-of-order queue fail", SIXTEEN,
    ON_OUT_OF_ORDER, CL_INVALID_OPERATION)
USE(profiling_refused, V11, POCL, "calls on a queue with profiling fail", SIXTEEN, ON_PROFILING,
    CL_INVALID_OPERATION)
USE(offset_refused, V11, POCL, "calls with an offset fail", SIXTEEN, WITH_OFFSET, CL_INVALID_VALUE)
USE(unaligned_refused, V11, POCL, "calls on imports that do not begin a page fail", SIXTEEN,
    ON_UNALIGNED, CL_INVALID_OPERATION)
USE(copies_between_imports_refused, V11, POCL, "copies between two imports fail", SIXTEEN,
    BETWEEN_IMPORTS, CL_INVALID_OPERATION)
USE(image_by_properties_refused, V11, POCL, "calls on images of clCreateImageWithProperties fail",
    SIXTEEN, ON_IMAGE_BY_PROPERTIES, CL_INVALID_OPERATION)
USE(orphans_refused, V11, POCL, "calls on objects whose import is released fail", SIXTEEN,
    ON_ORPHAN, CL_INVALID_MEM_OBJECT)
USE(threads_refused, V11, POCL, "calls on other threads fail", SIXTEEN, ON_OTHER_THREAD,
    CL_INVALID_OPERATION)

/* Version 1.1.0: the calls succeed and do something else. */
USE(read_lost, V11, POCL, "clEnqueueReadBuffer reads nothing", clEnqueueReadBuffer, ALWAYS, SKIPPED)
USE(write_lost_not_blocking, V11, POCL, "clEnqueueWriteBuffer without blocking writes nothing",
    clEnqueueWriteBuffer, NOT_BLOCKING_CALL, SKIPPED)
USE(read_lost_not_blocking, V11, POCL, "clEnqueueReadBuffer without blocking reads nothing",
    clEnqueueReadBuffer, NOT_BLOCKING_CALL, SKIPPED)
USE(read_image_lost_not_blocking, V11, POCL, "clEnqueueReadImage without blocking reads nothing",
    clEnqueueReadImage, NOT_BLOCKING_CALL, SKIPPED)
USE(copy_lost_on_the_second_queue, V11, POCL,
    "clEnqueueCopyBuffer copies nothing on a second queue", clEnqueueCopyBuffer, ON_SECOND_QUEUE,
    SKIPPED)
USE(fill_lost_with_wait_list, V11, POCL, "clEnqueueFillBuffer fills nothing with a wait list",
    clEnqueueFillBuffer, WITH_WAIT_LIST, SKIPPED)
USE(copy_lost_between_imports, V11, POCL, "clEnqueueCopyBuffer copies nothing between imports",
    clEnqueueCopyBuffer, BETWEEN_IMPORTS, SKIPPED)
USE(fill_image_lost_1d, V11, POCL, "clEnqueueFillImage fills no 1D image", clEnqueueFillImage,
    ON_IMAGE_1D, SKIPPED)
USE(read_without_offset, V11, POCL, "clEnqueueReadBuffer ignores the offset", clEnqueueReadBuffer,
    ALWAYS, NO_OFFSET_FROM)
USE(write_without_offset, V11, POCL, "clEnqueueWriteBuffer ignores the offset",
    clEnqueueWriteBuffer, ALWAYS, NO_OFFSET_TO)
USE(read_rect_without_origin, V11, POCL, "clEnqueueReadBufferRect ignores the buffer's origin",
    clEnqueueReadBufferRect, ALWAYS, NO_OFFSET_FROM)
USE(read_rect_without_host_origin, V11, POCL, "clEnqueueReadBufferRect ignores the host's origin",
    clEnqueueReadBufferRect, ALWAYS, NO_OFFSET_TO)
USE(write_rect_without_origin, V11, POCL, "clEnqueueWriteBufferRect ignores the buffer's origin",
    clEnqueueWriteBufferRect, ALWAYS, NO_OFFSET_TO)
USE(copy_without_offset, V11, POCL, "clEnqueueCopyBuffer ignores the source's offset",
    clEnqueueCopyBuffer, ALWAYS, NO_OFFSET_FROM)
USE(copy_to_without_offset, V11, POCL, "clEnqueueCopyBuffer ignores the destination's offset",
    clEnqueueCopyBuffer, ALWAYS, NO_OFFSET_TO)
USE(copy_rect_without_origin, V11, POCL, "clEnqueueCopyBufferRect ignores the source's origin",
    clEnqueueCopyBufferRect, ALWAYS, NO_OFFSET_FROM)
USE(copy_rect_to_without_origin, V11, POCL,
    "clEnqueueCopyBufferRect ignores the destination's origin", clEnqueueCopyBufferRect, ALWAYS,
    NO_OFFSET_TO)
USE(fill_without_offset, V11, POCL, "clEnqueueFillBuffer ignores the offset", clEnqueueFillBuffer,
    ALWAYS, NO_OFFSET_TO)
USE(map_without_offset, V11, POCL, "clEnqueueMapBuffer ignores the offset", clEnqueueMapBuffer,
    ALWAYS, NO_OFFSET_FROM)
USE(map_image_without_origin, V11, POCL, "clEnqueueMapImage ignores the origin", clEnqueueMapImage,
    ALWAYS, NO_OFFSET_FROM)
USE(read_image_without_origin, V11, POCL, "clEnqueueReadImage ignores the origin",
    clEnqueueReadImage, ALWAYS, NO_OFFSET_FROM)
USE(write_image_without_origin, V11, POCL, "clEnqueueWriteImage ignores the origin",
    clEnqueueWriteImage, ALWAYS, NO_OFFSET_TO)
USE(copy_image_without_origin, V11, POCL, "clEnqueueCopyImage ignores the source's origin",
    clEnqueueCopyImage, ALWAYS, NO_OFFSET_FROM)
USE(copy_image_to_without_origin, V11, POCL, "clEnqueueCopyImage ignores the destination's origin",
    clEnqueueCopyImage, ALWAYS, NO_OFFSET_TO)
USE(image_to_buffer_without_offset, V11, POCL,
    "clEnqueueCopyImageToBuffer ignores the buffer's offset", clEnqueueCopyImageToBuffer, ALWAYS,
    NO_OFFSET_TO)
USE(image_to_buffer_without_origin, V11, POCL,
    "clEnqueueCopyImageToBuffer ignores the image's origin", clEnqueueCopyImageToBuffer, ALWAYS,
    NO_OFFSET_FROM)
USE(buffer_to_image_without_offset, V11, POCL,
    "clEnqueueCopyBufferToImage ignores the buffer's offset", clEnqueueCopyBufferToImage, ALWAYS,
    NO_OFFSET_FROM)
USE(buffer_to_image_without_origin, V11, POCL,
    "clEnqueueCopyBufferToImage ignores the image's origin", clEnqueueCopyBufferToImage, ALWAYS,
    NO_OFFSET_TO)
USE(fill_image_without_origin, V11, POCL, "clEnqueueFillImage ignores the origin",
    clEnqueueFillImage, ALWAYS, NO_OFFSET_TO)
USE(read_rect_without_pitch, V11, POCL, "clEnqueueReadBufferRect ignores the buffer's row pitch",
    clEnqueueReadBufferRect, ALWAYS, NO_PITCH_FROM)
USE(read_rect_without_host_pitch, V11, POCL, "clEnqueueReadBufferRect ignores the host's row pitch",
    clEnqueueReadBufferRect, ALWAYS, NO_PITCH_TO)
USE(write_rect_without_pitch, V11, POCL, "clEnqueueWriteBufferRect ignores the buffer's row pitch",
    clEnqueueWriteBufferRect, ALWAYS, NO_PITCH_TO)
USE(copy_rect_without_pitch, V11, POCL,
    "clEnqueueCopyBufferRect ignores the destination's row pitch", clEnqueueCopyBufferRect, ALWAYS,
    NO_PITCH_TO)
USE(read_image_without_pitch, V11, POCL, "clEnqueueReadImage ignores the host's row pitch",
    clEnqueueReadImage, ALWAYS, NO_PITCH_TO)
USE(write_image_without_pitch, V11, POCL, "clEnqueueWriteImage ignores the host's row pitch",
    clEnqueueWriteImage, ALWAYS, NO_PITCH_FROM)
USE(read_short, V11, POCL, "clEnqueueReadBuffer loses the last byte", clEnqueueReadBuffer, ALWAYS,
    SHORT)
USE(write_short, V11, POCL, "clEnqueueWriteBuffer loses the last byte", clEnqueueWriteBuffer,
    ALWAYS, SHORT)
USE(copy_short, V11, POCL, "clEnqueueCopyBuffer loses the last byte", clEnqueueCopyBuffer, ALWAYS,
    SHORT)
USE(fill_short, V11, POCL, "clEnqueueFillBuffer loses the last pattern", clEnqueueFillBuffer,
    ALWAYS, SHORT)
USE(read_of_sub_buffer_at_zero, V11, POCL, "clEnqueueReadBuffer ignores a sub-buffer's origin",
    clEnqueueReadBuffer, ON_SUB_BUFFER, AS_PARENT)
USE(write_of_sub_buffer_at_zero, V11, POCL, "clEnqueueWriteBuffer ignores a sub-buffer's origin",
    clEnqueueWriteBuffer, ON_SUB_BUFFER, AS_PARENT)
USE(fill_of_sub_buffer_at_zero, V11, POCL, "clEnqueueFillBuffer ignores a sub-buffer's origin",
    clEnqueueFillBuffer, ON_SUB_BUFFER, AS_PARENT)
USE(rect_of_sub_buffer_at_zero, V11, POCL, "clEnqueueWriteBufferRect ignores a sub-buffer's origin",
    clEnqueueWriteBufferRect, ON_SUB_BUFFER, AS_PARENT)
USE(calls_without_wait_list, V11, POCL, "the calls do not wait for their wait list", SIXTEEN,
    WITH_WAIT_LIST, NO_WAIT_LIST)
USE(read_without_wait_list, V11, POCL, "clEnqueueReadBuffer does not wait for its wait list",
    clEnqueueReadBuffer, WITH_WAIT_LIST, NO_WAIT_LIST)
USE(map_without_wait_list, V11, POCL, "clEnqueueMapBuffer does not wait for its wait list",
    clEnqueueMapBuffer, WITH_WAIT_LIST, NO_WAIT_LIST)
USE(copy_without_wait_list, V11, POCL, "clEnqueueCopyBuffer does not wait for its wait list",
    clEnqueueCopyBuffer, WITH_WAIT_LIST, NO_WAIT_LIST)
USE(calls_without_event, V11, POCL, "the calls return no event", SIXTEEN, ALWAYS, NO_EVENT)
USE(unmap_without_event, V11, POCL, "clEnqueueUnmapMemObject returns no event",
    clEnqueueUnmapMemObject, ALWAYS, NO_EVENT)
USE(map_image_without_event, V11, POCL, "clEnqueueMapImage returns no event", clEnqueueMapImage,
    ALWAYS, NO_EVENT)
USE(read_does_not_block, V11, POCL, "a blocking clEnqueueReadBuffer returns early",
    clEnqueueReadBuffer, BLOCKING, DOES_NOT_BLOCK)
USE(map_does_not_block, V11, POCL, "a blocking clEnqueueMapBuffer returns early",
    clEnqueueMapBuffer, BLOCKING, DOES_NOT_BLOCK)
OTHER(map_elsewhere, V11, POCL, "clEnqueueMapBuffer returns a pointer to a copy, which unmap drops")
OTHER(map_elsewhere_written_back, V11, POCL,
      "clEnqueueMapBuffer returns a pointer to a copy, which unmap writes back")
OTHER(map_before_the_offset, V11, POCL, "clEnqueueMapBuffer returns the beginning of the page")
OTHER(map_image_pitch_tight, V11, POCL, "clEnqueueMapImage tells a row pitch without padding")
OTHER(map_invalidates_all, V11, POCL,
      "a map with CL_MAP_WRITE_INVALIDATE_REGION clears bytes beside the region")
OTHER(map_code_unset, V11, POCL, "a successful map does not write errcode_ret")
OTHER(map_code_needed, V11, POCL, "a map with errcode_ret NULL crashes")
OTHER(unmap_clears, V11, POCL, "clEnqueueUnmapMemObject clears the memory")
OTHER(unmap_anything, V11, POCL, "clEnqueueUnmapMemObject succeeds for a pointer of no map")
OTHER(event_type_wrong, V11, POCL, "events of the sixteen calls have the type of a kernel")
OTHER(event_type_of_kernels_wrong, V10, POCL,
      "events of kernels on imports have the type of a marker")
OTHER(event_queue_null, V11, POCL, "events of the sixteen calls have no queue")
OTHER(event_context_null, V11, POCL, "events of the sixteen calls have no context")
OTHER(event_never_submitted, V10, POCL,
      "the event of a kernel on an import tells CL_QUEUED until a wait")
OTHER(event_profiling_refused, V11, POCL, "events of commands on imports have no profile")

/* Errors of clImportMemoryARM. */
IMPORT(context_null_accepted, V10, POCL, "a NULL context is accepted", NULL_CONTEXT, CL_SUCCESS)
IMPORT(context_null_as_value, V10, POCL, "a NULL context is CL_INVALID_VALUE", NULL_CONTEXT,
       CL_INVALID_VALUE)
IMPORT(memory_null_accepted, V10, POCL, "memory NULL is accepted", NULL_MEMORY, CL_SUCCESS)
IMPORT(memory_null_as_host_ptr, V10, POCL, "memory NULL is CL_INVALID_HOST_PTR", NULL_MEMORY,
       CL_INVALID_HOST_PTR)
IMPORT(memory_null_as_operation, V10, POCL, "memory NULL is CL_INVALID_OPERATION", NULL_MEMORY,
       CL_INVALID_OPERATION)
IMPORT(size_zero_accepted, V10, POCL, "size 0 is accepted in 1.0.0", SIZE_ZERO, CL_SUCCESS)
IMPORT(size_zero_accepted_11, V11, POCL, "size 0 is accepted", SIZE_ZERO, CL_SUCCESS)
IMPORT(size_zero_as_value, V11, POCL, "size 0 is CL_INVALID_VALUE", SIZE_ZERO, CL_INVALID_VALUE)
IMPORT(two_accesses_accepted, V10, POCL, "two access flags are accepted", TWO_ACCESSES, CL_SUCCESS)
IMPORT(two_host_accesses_accepted, V10, POCL, "two host access flags are accepted",
       TWO_HOST_ACCESSES, CL_SUCCESS)
IMPORT(two_accesses_as_property, V10, POCL, "two access flags are CL_INVALID_PROPERTY",
       TWO_ACCESSES, CL_INVALID_PROPERTY)
IMPORT(alloc_host_ptr_accepted, V10, POCL, "CL_MEM_ALLOC_HOST_PTR is accepted", FLAG_ALLOC,
       CL_SUCCESS)
IMPORT(copy_host_ptr_accepted, V10, POCL, "CL_MEM_COPY_HOST_PTR is accepted", FLAG_COPY, CL_SUCCESS)
IMPORT(copy_host_ptr_as_host_ptr, V10, POCL, "CL_MEM_COPY_HOST_PTR is CL_INVALID_HOST_PTR",
       FLAG_COPY, CL_INVALID_HOST_PTR)
IMPORT(use_and_copy_accepted, V10, POCL,
       "CL_MEM_USE_HOST_PTR with CL_MEM_COPY_HOST_PTR is accepted", FLAG_USE_AND_COPY, CL_SUCCESS)
IMPORT(unknown_flag_accepted, V10, POCL, "unknown flags are accepted", FLAG_UNKNOWN, CL_SUCCESS)
IMPORT(svm_flag_accepted, V10, POCL, "flags of SVM are accepted", FLAG_SVM, CL_SUCCESS)
IMPORT(kernel_flag_accepted, V10, POCL, "CL_MEM_KERNEL_READ_AND_WRITE is accepted", FLAG_KERNEL,
       CL_SUCCESS)
IMPORT(unknown_property_accepted, V10, POCL, "unknown properties are accepted", PROPERTY_UNKNOWN,
       CL_SUCCESS)
IMPORT(unknown_second_property_accepted, V10, POCL,
       "unknown properties behind the type are accepted", PROPERTY_UNKNOWN_SECOND, CL_SUCCESS)
IMPORT(unknown_property_as_value, V10, POCL, "unknown properties are CL_INVALID_VALUE",
       PROPERTY_UNKNOWN, CL_INVALID_VALUE)
IMPORT(unknown_type_accepted, V10, POCL, "unknown types are accepted", TYPE_UNKNOWN, CL_SUCCESS)
IMPORT(unknown_type_as_value, V10, POCL, "unknown types are CL_INVALID_VALUE", TYPE_UNKNOWN,
       CL_INVALID_VALUE)
IMPORT(type_cut_to_int, V10, POCL, "the type is compared without its high bits", TYPE_HIGH_BITS,
       CL_SUCCESS)
IMPORT(type_zero_accepted, V10, POCL, "type 0 is the default", TYPE_ZERO, CL_SUCCESS)
IMPORT(hole_first_accepted, V10, POCL, "the first page need not be mapped", HOLE_FIRST, CL_SUCCESS)
IMPORT(hole_middle_accepted, V10, POCL, "pages in the middle need not be mapped", HOLE_MIDDLE,
       CL_SUCCESS)
IMPORT(hole_far_accepted, V10, POCL, "pages behind the sixteenth need not be mapped", HOLE_FAR,
       CL_SUCCESS)
IMPORT(hole_last_accepted, V10, POCL, "the last page need not be mapped", HOLE_LAST, CL_SUCCESS)
IMPORT(hole_all_accepted, V10, POCL, "a page that is not mapped is accepted", HOLE_ALL, CL_SUCCESS)
IMPORT(hole_for_readers_accepted, V10, POCL, "imports for reading need not be mapped", HOLE_READERS,
       CL_SUCCESS)
IMPORT(hole_unaligned_accepted, V10, POCL, "imports that do not begin a page need not be mapped",
       HOLE_UNALIGNED, CL_SUCCESS)
IMPORT(hole_as_value, V10, POCL, "memory that is not mapped is CL_INVALID_VALUE", HOLE_MIDDLE,
       CL_INVALID_VALUE)
IMPORT(hole_all_as_allocation, V10, POCL,
       "a page that is not mapped is CL_MEM_OBJECT_ALLOCATION_FAILURE", HOLE_ALL,
       CL_MEM_OBJECT_ALLOCATION_FAILURE)
IMPORT(low_address_accepted, V10, POCL, "the first page of the address space is accepted",
       LOW_ADDRESS, CL_SUCCESS)
IMPORT(low_address_as_value, V10, POCL, "the first page of the address space is CL_INVALID_VALUE",
       LOW_ADDRESS, CL_INVALID_VALUE)
IMPORT(kernel_address_accepted, V10, POCL, "addresses of the kernel are accepted", KERNEL_ADDRESS,
       CL_SUCCESS)
IMPORT(overflow_accepted, V10, POCL, "a range over the end of the address space is accepted",
       ADDRESS_OVERFLOW, CL_SUCCESS)
IMPORT(size_maximum_accepted, V10, POCL, "size SIZE_MAX is accepted", SIZE_MAXIMUM, CL_SUCCESS)
IMPORT(not_accessible_accepted, V10, POCL, "memory without the access is accepted", NOT_ACCESSIBLE,
       CL_SUCCESS)
IMPORT(errors_as_resources, V10, POCL, "each error is CL_OUT_OF_RESOURCES", REFUSED,
       CL_OUT_OF_RESOURCES)
OTHER(error_with_a_handle, V10, POCL, "a refused import returns a handle with the error")
OTHER(error_code_zero, V10, POCL, "a refused import returns NULL and CL_SUCCESS")
OTHER(error_code_positive, V10, POCL, "a refused import returns the positive code")
OTHER(success_code_unset, V10, POCL, "a successful import does not write errcode_ret")
OTHER(error_code_unset, V10, POCL, "a refused import does not write errcode_ret")
OTHER(error_code_needed, V10, POCL, "an import with errcode_ret NULL crashes")
OTHER(error_code_needed_on_error, V10, POCL, "a refused import with errcode_ret NULL crashes")
OTHER(list_is_changed, V10, POCL, "the import writes into the list of properties")
OTHER(list_read_behind_the_end, V10, POCL, "the list is read behind its end")
OTHER(list_needs_an_end, V10, POCL, "a list of one zero is refused")
OTHER(list_of_first_pair, V10, POCL, "only the first property of the list is read")
OTHER(refused_import_leaks_memory, V10, POCL, "a refused import leaves a mapping behind")
OTHER(refused_import_leaks_descriptor, V10, POCL, "a refused import leaves a descriptor behind")
OTHER(callback_of_other_context, V10, POCL,
      "each refused import tells the first context's callback")

/* Valid imports that fail. */
IMPORT(unaligned_fails, V10, POCL, "imports have to begin a page", UNALIGNED, CL_INVALID_OPERATION)
IMPORT(less_than_a_line_fails, V10, POCL, "imports have to begin a cache line", UNALIGNED_LINE,
       CL_INVALID_VALUE)
IMPORT(odd_address_fails, V10, POCL, "imports have to begin at an even address", UNALIGNED_ODD,
       CL_INVALID_VALUE)
IMPORT(odd_size_fails, V10, POCL, "sizes have to be whole words", ODD_SIZE, CL_INVALID_BUFFER_SIZE)
IMPORT(one_byte_fails, V10, POCL, "one byte cannot be imported", ONE_BYTE, CL_INVALID_BUFFER_SIZE)
IMPORT(less_than_a_page_fails, V10, POCL, "less than a page cannot be imported", SMALL,
       CL_INVALID_BUFFER_SIZE)
IMPORT(large_fails, V10, POCL, "64 KiB and more cannot be imported", LARGE,
       CL_MEM_OBJECT_ALLOCATION_FAILURE)
IMPORT(huge_fails, V10, POCL, "64 MiB and more cannot be imported", HUGE,
       CL_MEM_OBJECT_ALLOCATION_FAILURE)
IMPORT(second_fails, V10, POCL, "one import at a time", SECOND, CL_OUT_OF_RESOURCES)
IMPORT(same_pages_fail, V10, POCL, "pages can be imported once", SAME_PAGES, CL_INVALID_OPERATION)
IMPORT(files_fail, V10, POCL, "mapped files cannot be imported", OF_A_FILE, CL_INVALID_OPERATION)
IMPORT(shared_memory_fails, V10, POCL, "shared memory cannot be imported", OF_SHARED_MEMORY,
       CL_INVALID_OPERATION)
IMPORT(stack_fails, V10, POCL, "the stack cannot be imported", ON_THE_STACK, CL_INVALID_OPERATION)
IMPORT(heap_fails, V10, POCL, "malloc()'s memory cannot be imported", IN_THE_HEAP,
       CL_INVALID_OPERATION)
IMPORT(program_fails, V10, POCL, "static variables cannot be imported", IN_THE_PROGRAM,
       CL_INVALID_OPERATION)
IMPORT(untouched_fails, V10, POCL, "pages that were never touched cannot be imported", UNTOUCHED,
       CL_INVALID_OPERATION)
IMPORT(read_only_pages_fail, V10, POCL, "pages without write access cannot be imported for reading",
       READ_ONLY_PAGES, CL_INVALID_OPERATION)
IMPORT(read_only_fails, V10, POCL, "CL_MEM_READ_ONLY fails", READ_ONLY, CL_INVALID_VALUE)
IMPORT(write_only_fails, V10, POCL, "CL_MEM_WRITE_ONLY fails", WRITE_ONLY, CL_INVALID_VALUE)
IMPORT(no_flags_fail, V10, POCL, "flags 0 fail", NO_FLAGS, CL_INVALID_VALUE)
IMPORT(host_write_only_fails, V10, POCL, "CL_MEM_HOST_WRITE_ONLY fails", HOST_WRITE_ONLY,
       CL_INVALID_VALUE)
IMPORT(host_read_only_fails, V10, POCL, "CL_MEM_HOST_READ_ONLY fails", HOST_READ_ONLY,
       CL_INVALID_VALUE)
IMPORT(host_no_access_fails, V10, POCL, "CL_MEM_HOST_NO_ACCESS fails", HOST_NO_ACCESS,
       CL_INVALID_VALUE)
IMPORT(use_host_ptr_fails, V10, POCL, "CL_MEM_USE_HOST_PTR fails", USE_HOST_PTR, CL_INVALID_VALUE)
IMPORT(empty_list_fails, V10, POCL, "an empty list fails", EMPTY_LIST, CL_INVALID_PROPERTY)
IMPORT(listed_type_fails, V10, POCL, "the default type cannot be listed", TYPE_LISTED,
       CL_INVALID_PROPERTY)
IMPORT(second_context_fails, V10, POCL, "imports work in one context", SECOND_CONTEXT,
       CL_INVALID_CONTEXT)
IMPORT(hundreds_fail, V10, POCL, "500 imports at once fail", HUNDREDS, CL_OUT_OF_RESOURCES)
IMPORT(threads_fail, V10, POCL, "imports on other threads fail", THREAD, CL_OUT_OF_RESOURCES)
IMPORT(second_time_fails, V10, POCL, "memory cannot be imported again after the release",
       AFTER_RELEASE, CL_INVALID_OPERATION)
IMPORT(two_mappings_fail, V10, POCL, "a range of two mappings cannot be imported", TWO_MAPPINGS,
       CL_INVALID_OPERATION)
IMPORT(error_code_null_fails, V10, POCL, "an import with errcode_ret NULL returns NULL",
       ERROR_CODE_NULL, CL_INVALID_VALUE)

/* Imports that are copies. */
COPY(copied_once, V10, POCL, "imports are copied once, when they are made", VALID, COPY_AT_IMPORT)
COPY(copied_until_the_release, V10, POCL, "imports are copied and written back at the release",
     VALID, COPY_AT_ENDS)
COPY(copied_at_enqueue, V10, POCL, "imports are copied at each enqueue and written back at waits",
     VALID, COPY_AT_ENQUEUE)
COPY(copied_in_the_queue, V10, POCL, "imports are copied before and after each kernel", VALID,
     COPY_IN_QUEUE)
COPY(copied_in_the_queue_11, V11, POCL, "imports are copied before and after each command", VALID,
     COPY_IN_QUEUE)
COPY(copied_in_only, V10, POCL, "kernels' writes are lost", VALID, COPY_IN_ONLY)
COPY(copied_out_only, V10, POCL, "kernels do not see what the host writes later", VALID,
     COPY_OUT_ONLY)
COPY(huge_copied_once, V10, POCL, "imports of 64 MiB and more are copied once", HUGE,
     COPY_AT_IMPORT)
COPY(huge_copied_in_the_queue, V10, POCL,
     "imports of 64 MiB and more are copied around each kernel", HUGE, COPY_IN_QUEUE)
OTHER(copied_above_96_mib, V10, POCL, "imports of more than 96 MiB are copied once")
COPY(large_copied_at_enqueue, V10, POCL, "imports of 64 KiB and more are copied at each enqueue",
     LARGE, COPY_AT_ENQUEUE)
COPY(unaligned_copied_once, V10, POCL, "imports that do not begin a page are copied once",
     UNALIGNED, COPY_AT_IMPORT)
COPY(unaligned_copied_at_enqueue, V10, POCL,
     "imports that do not begin a page are copied at each enqueue", UNALIGNED, COPY_AT_ENQUEUE)
COPY(unaligned_copied_in_the_queue, V10, POCL,
     "imports that do not begin a page are copied around each kernel", UNALIGNED, COPY_IN_QUEUE)
COPY(unaligned_pages_copied_in_the_queue, V10, POCL,
     "imports that do not begin a page are copied, and whole pages are written back", UNALIGNED,
     COPY_PAGES_IN_QUEUE)
COPY(lines_copied_in_the_queue, V10, POCL,
     "imports that do not begin a cache line are copied around each kernel", UNALIGNED_LINE,
     COPY_IN_QUEUE)
COPY(odd_size_copied_at_enqueue, V10, POCL, "imports of an odd size are copied at each enqueue",
     ODD_SIZE, COPY_AT_ENQUEUE)
COPY(small_copied_at_enqueue, V10, POCL, "imports of less than a page are copied at each enqueue",
     SMALL, COPY_AT_ENQUEUE)
COPY(small_copied_in_the_queue, V10, POCL,
     "imports of less than a page are copied around each kernel", SMALL, COPY_IN_QUEUE)
COPY(write_only_copied_once, V10, POCL, "CL_MEM_WRITE_ONLY imports are copied once", WRITE_ONLY,
     COPY_AT_IMPORT)
COPY(write_only_copied_in_the_queue, V10, POCL,
     "CL_MEM_WRITE_ONLY imports are copied around each kernel", WRITE_ONLY, COPY_IN_QUEUE)
COPY(write_only_copied_out, V10, POCL,
     "CL_MEM_WRITE_ONLY imports are written out and never read in", WRITE_ONLY, COPY_OUT_WHOLE)
COPY(read_only_copied_once, V10, POCL, "CL_MEM_READ_ONLY imports are copied once", READ_ONLY,
     COPY_AT_IMPORT)
COPY(read_only_copied_at_enqueue, V10, POCL, "CL_MEM_READ_ONLY imports are copied at each enqueue",
     READ_ONLY, COPY_AT_ENQUEUE)
COPY(read_only_copied_in_the_queue, V10, POCL,
     "CL_MEM_READ_ONLY imports are copied before each kernel", READ_ONLY, COPY_IN_QUEUE)
COPY(second_copied_once, V10, POCL, "imports but the first are copied once", SECOND, COPY_AT_IMPORT)
COPY(same_pages_copied_once, V10, POCL, "the second import of a page is a copy", SAME_PAGES,
     COPY_AT_IMPORT)
COPY(same_pages_copied_at_enqueue, V10, POCL,
     "the second import of a page is copied at each enqueue", SAME_PAGES, COPY_AT_ENQUEUE)
COPY(files_copied_once, V10, POCL, "mapped files are copied once", OF_A_FILE, COPY_AT_IMPORT)
COPY(shared_memory_copied_once, V10, POCL, "shared memory is copied once", OF_SHARED_MEMORY,
     COPY_AT_IMPORT)
COPY(shared_memory_copied_at_enqueue, V10, POCL, "shared memory is copied at each enqueue",
     OF_SHARED_MEMORY, COPY_AT_ENQUEUE)
COPY(stack_copied_once, V10, POCL, "the stack is copied once", ON_THE_STACK, COPY_AT_IMPORT)
COPY(heap_copied_once, V10, POCL, "malloc()'s memory is copied once", IN_THE_HEAP, COPY_AT_IMPORT)
COPY(heap_copied_at_enqueue, V10, POCL, "malloc()'s memory is copied at each enqueue", IN_THE_HEAP,
     COPY_AT_ENQUEUE)
COPY(program_copied_once, V10, POCL, "static variables are copied once", IN_THE_PROGRAM,
     COPY_AT_IMPORT)
COPY(read_only_pages_copied_once, V10, POCL, "pages without write access are copied once",
     READ_ONLY_PAGES, COPY_AT_IMPORT)
COPY(host_flags_copied_once, V10, POCL, "imports with CL_MEM_HOST_NO_ACCESS are copied once",
     HOST_NO_ACCESS, COPY_AT_IMPORT)
COPY(host_flags_copied_at_enqueue, V10, POCL,
     "imports with CL_MEM_HOST_NO_ACCESS are copied at each enqueue", HOST_NO_ACCESS,
     COPY_AT_ENQUEUE)
COPY(use_host_ptr_copied_once, V10, POCL, "imports with CL_MEM_USE_HOST_PTR are copied once",
     USE_HOST_PTR, COPY_AT_IMPORT)
COPY(hundreds_copied_once, V10, POCL, "imports are copies once 500 are alive", HUNDREDS,
     COPY_AT_IMPORT)
COPY(second_context_copied_once, V10, POCL, "imports of a second context are copied once",
     SECOND_CONTEXT, COPY_AT_IMPORT)
COPY(threads_copied_at_enqueue, V10, POCL, "imports of other threads are copied once", THREAD,
     COPY_AT_IMPORT)
COPY(again_copied_once, V10, POCL, "the import after a release gets the old copy", AFTER_RELEASE,
     COPY_AT_IMPORT)

/* What an import does to memory. */
OTHER(import_clears, V10, POCL, "the import clears the memory")
OTHER(import_replaces_pages, V10, POCL,
      "the import moves the bytes to new pages at the same address")
OTHER(import_write_protects, V10, POCL, "the import protects the pages from the host's writes")
OTHER(import_locks, V10, POCL, "the import locks pages, and the release does not unlock them")
OTHER(import_clears_the_page, V10, POCL,
      "the import clears the bytes of the pages beside the range")
OTHER(import_keeps_from_children, V10, POCL, "children of fork() do not have imported pages")
OTHER(kernel_clears_the_page, V10, POCL,
      "a kernel on an unaligned import clears the rest of the first page")
OTHER(kernel_restores_the_page, V10, POCL,
      "a kernel on an unaligned import restores bytes beside the range")
OTHER(release_clears, V10, POCL, "the release clears the memory")
OTHER(release_unmaps, V10, POCL, "the release unmaps the memory")
OTHER(release_clears_the_page, V10, POCL,
      "the release clears the bytes of the pages beside the range")
OTHER(release_restores, V10, POCL, "the release restores the bytes of the import's beginning")
OTHER(imports_at_page_start, V10, POCL, "an import begins at the start of its page")
OTHER(imports_at_line_start, V10, POCL, "an import begins at the start of its cache line")
OTHER(imports_at_word_start, V10, POCL, "an import begins at the start of its word")

/* Lives. */
OTHER(retain_ignored, V10, POCL, "clRetainMemObject does nothing")
OTHER(retain_of_sub_buffers_ignored, V10, POCL, "clRetainMemObject does nothing for sub-buffers")
OTHER(release_ignored, V10, POCL, "clReleaseMemObject never destroys an import")
OTHER(release_with_children_ignored, V10, POCL,
      "an import that had a sub-buffer is never destroyed")
OTHER(release_fails, V10, POCL, "the last clReleaseMemObject returns an error")
OTHER(release_leaks_memory, V10, POCL, "each import leaves a mapping behind")
OTHER(release_leaks_heap, V10, POCL, "each import leaves 64 KiB of the heap behind")
OTHER(release_leaks_descriptor, V10, POCL, "each import leaves a descriptor behind")
OTHER(release_leaks_thread, V10, POCL, "each import leaves a thread behind")
OTHER(sub_buffer_leaks_memory, V10, POCL, "each sub-buffer leaves a mapping behind")
OTHER(image_leaks_memory, V10, POCL, "each image leaves a mapping behind")
OTHER(image_leaks_import, V10, POCL, "each image keeps its import for ever")
OTHER(sub_buffer_leaks_import, V10, POCL, "each sub-buffer keeps its import for ever")
OTHER(image_of_sub_buffer_leaks, V10, POCL,
      "each image of a sub-buffer keeps the sub-buffer for ever")
OTHER(kernel_keeps_import, V10, POCL, "a kernel that used an import keeps the import for ever")
OTHER(release_too_early, V10, POCL,
      "the release of an import ends its sub-buffers' access to the memory")
OTHER(release_under_images, V10, POCL,
      "the release of an import ends its images' access to the memory")
OTHER(callback_never, V10, POCL, "destructor callbacks of imports are never called")
OTHER(callback_twice, V10, POCL, "destructor callbacks of imports are called twice")
OTHER(callback_at_once, V10, POCL, "destructor callbacks of imports are called when they are set")
OTHER(callback_at_release, V10, POCL,
      "destructor callbacks are called at the release, before derived objects end")
OTHER(callback_in_order, V10, POCL,
      "destructor callbacks are called in the order of their registration")
OTHER(callback_one, V10, POCL, "an import has one destructor callback")
OTHER(callback_data_lost, V10, POCL, "destructor callbacks get NULL as their data")
OTHER(callback_other_handle, V10, POCL, "destructor callbacks get NULL as the object")
OTHER(callback_refused, V10, POCL, "destructor callbacks of imports are refused")
OTHER(callback_of_sub_buffers_never, V10, POCL,
      "destructor callbacks of sub-buffers are never called")
OTHER(callback_of_images_never, V10, POCL, "destructor callbacks of images are never called")
OTHER(callback_null_accepted, V10, POCL, "a destructor callback NULL is accepted")

/* Queries. */
QUERY(query_type_image, V10, POCL, "CL_MEM_TYPE of an import is an image's", SHAPE_IMPORT,
      CL_MEM_TYPE, PLUS_ONE)
QUERY(query_flags_use_host_ptr, V10, POCL, "CL_MEM_FLAGS shows CL_MEM_USE_HOST_PTR", SHAPE_IMPORT,
      CL_MEM_FLAGS, WITH_USE_HOST_PTR)
QUERY(query_flags_zero, V10, POCL, "CL_MEM_FLAGS is 0", SHAPE_IMPORT, CL_MEM_FLAGS, ZERO)
QUERY(query_flags_read_write, V10, POCL, "CL_MEM_FLAGS is always CL_MEM_READ_WRITE", SHAPE_IMPORT,
      CL_MEM_FLAGS, AS_READ_WRITE)
QUERY(query_flags_host, V10, POCL, "CL_MEM_FLAGS shows no host access flag", SHAPE_IMPORT,
      CL_MEM_FLAGS, NO_HOST_FLAGS)
QUERY(query_flags_sub_zero, V10, POCL,
      "CL_MEM_FLAGS of a sub-buffer is what was passed, and not inherited", SHAPE_SUB, CL_MEM_FLAGS,
      AS_PASSED)
QUERY(query_flags_sub_read_write, V10, POCL,
      "CL_MEM_FLAGS of a sub-buffer is always CL_MEM_READ_WRITE", SHAPE_SUB, CL_MEM_FLAGS,
      AS_READ_WRITE)
QUERY(query_flags_sub_use_host_ptr, V10, POCL,
      "CL_MEM_FLAGS of a sub-buffer shows CL_MEM_USE_HOST_PTR", SHAPE_SUB, CL_MEM_FLAGS,
      WITH_USE_HOST_PTR)
QUERY(query_flags_sub_host, V10, POCL,
      "CL_MEM_FLAGS of a sub-buffer shows no inherited host access flag", SHAPE_SUB, CL_MEM_FLAGS,
      NO_HOST_FLAGS)
QUERY(query_flags_image_zero, V10, POCL,
      "CL_MEM_FLAGS of an image is what was passed, and not inherited", SHAPE_IMAGES, CL_MEM_FLAGS,
      AS_PASSED)
QUERY(query_flags_image_read_write, V10, POCL,
      "CL_MEM_FLAGS of an image is always CL_MEM_READ_WRITE", SHAPE_IMAGES, CL_MEM_FLAGS,
      AS_READ_WRITE)
QUERY(query_host_ptr, V10, POCL, "CL_MEM_HOST_PTR shows the memory", SHAPE_IMPORT, CL_MEM_HOST_PTR,
      MEMORY)
QUERY(query_host_ptr_sub, V10, POCL, "CL_MEM_HOST_PTR of a sub-buffer shows the memory", SHAPE_SUB,
      CL_MEM_HOST_PTR, MEMORY)
QUERY(query_host_ptr_image, V10, POCL, "CL_MEM_HOST_PTR of an image shows the memory", SHAPE_IMAGES,
      CL_MEM_HOST_PTR, MEMORY)
QUERY(query_size_pages, V10, POCL, "CL_MEM_SIZE is a whole number of pages", SHAPE_IMPORT,
      CL_MEM_SIZE, WHOLE_PAGES)
QUERY(query_size_words, V10, POCL, "CL_MEM_SIZE is a whole number of words", SHAPE_IMPORT,
      CL_MEM_SIZE, WHOLE_WORDS)
QUERY(query_size_of_sub, V10, POCL, "CL_MEM_SIZE of a sub-buffer is the import's", SHAPE_SUB,
      CL_MEM_SIZE, OF_PARENT)
QUERY(query_map_count, V10, POCL, "CL_MEM_MAP_COUNT of an import is 1", SHAPE_IMPORT,
      CL_MEM_MAP_COUNT, PLUS_ONE)
QUERY(query_map_count_never, V11, POCL, "CL_MEM_MAP_COUNT is always 0", SHAPE_ANY, CL_MEM_MAP_COUNT,
      ZERO)
QUERY(query_references, V10, POCL, "CL_MEM_REFERENCE_COUNT of an import is one too much",
      SHAPE_IMPORT, CL_MEM_REFERENCE_COUNT, PLUS_ONE)
QUERY(query_references_of_sub, V10, POCL, "CL_MEM_REFERENCE_COUNT of a sub-buffer is one too much",
      SHAPE_SUB, CL_MEM_REFERENCE_COUNT, PLUS_ONE)
QUERY(query_references_of_image, V10, POCL, "CL_MEM_REFERENCE_COUNT of an image is one too much",
      SHAPE_IMAGES, CL_MEM_REFERENCE_COUNT, PLUS_ONE)
QUERY(query_references_zero, V10, POCL, "CL_MEM_REFERENCE_COUNT is 0", SHAPE_IMPORT,
      CL_MEM_REFERENCE_COUNT, ZERO)
QUERY(query_references_constant, V10, POCL, "CL_MEM_REFERENCE_COUNT is always 1", SHAPE_IMPORT,
      CL_MEM_REFERENCE_COUNT, ONE)
QUERY(query_context_null, V10, POCL, "CL_MEM_CONTEXT of an import is NULL", SHAPE_IMPORT,
      CL_MEM_CONTEXT, ZERO)
QUERY(query_context_of_sub_null, V10, POCL, "CL_MEM_CONTEXT of a sub-buffer is NULL", SHAPE_SUB,
      CL_MEM_CONTEXT, ZERO)
QUERY(query_context_of_image_null, V10, POCL, "CL_MEM_CONTEXT of an image is NULL", SHAPE_IMAGES,
      CL_MEM_CONTEXT, ZERO)
QUERY(query_associated_self, V10, POCL, "CL_MEM_ASSOCIATED_MEMOBJECT of an import is the import",
      SHAPE_IMPORT, CL_MEM_ASSOCIATED_MEMOBJECT, ITSELF)
QUERY(query_associated_of_sub, V10, POCL, "CL_MEM_ASSOCIATED_MEMOBJECT of a sub-buffer is NULL",
      SHAPE_SUB, CL_MEM_ASSOCIATED_MEMOBJECT, ZERO)
QUERY(query_associated_of_image, V10, POCL, "CL_MEM_ASSOCIATED_MEMOBJECT of an image is NULL",
      SHAPE_IMAGES, CL_MEM_ASSOCIATED_MEMOBJECT, ZERO)
QUERY(query_associated_of_1d, V10, POCL, "CL_MEM_ASSOCIATED_MEMOBJECT of a 1D image is NULL",
      SHAPE_IMAGE_1D, CL_MEM_ASSOCIATED_MEMOBJECT, ZERO)
QUERY(query_associated_root, V10, POCL,
      "CL_MEM_ASSOCIATED_MEMOBJECT of an image of a sub-buffer is the import", SHAPE_IMAGE,
      CL_MEM_ASSOCIATED_MEMOBJECT, ROOT)
QUERY(query_offset_in_page, V10, POCL, "CL_MEM_OFFSET of an import is the offset in the page",
      SHAPE_IMPORT, CL_MEM_OFFSET, IN_PAGE)
QUERY(query_offset_of_sub, V10, POCL, "CL_MEM_OFFSET of a sub-buffer is 0", SHAPE_SUB,
      CL_MEM_OFFSET, ZERO)
QUERY(query_offset_of_sub_in_page, V10, POCL,
      "CL_MEM_OFFSET of a sub-buffer counts from the page of the import", SHAPE_SUB, CL_MEM_OFFSET,
      IN_PAGE)
QUERY(query_svm, V10, POCL, "CL_MEM_USES_SVM_POINTER of an import is CL_TRUE", SHAPE_IMPORT,
      CL_MEM_USES_SVM_POINTER, ONE)
QUERY(query_properties, V10, POCL, "CL_MEM_PROPERTIES of an import are not empty", SHAPE_IMPORT,
      CL_MEM_PROPERTIES, NOT_EMPTY)
QUERY(query_size_ret, V10, POCL, "clGetMemObjectInfo does not write the size", SHAPE_IMPORT,
      CL_MEM_SIZE, NO_SIZE)
QUERY(query_too_short, V10, POCL, "clGetMemObjectInfo accepts a value of too few bytes",
      SHAPE_IMPORT, CL_MEM_SIZE, TOO_SHORT)
QUERY(query_unknown, V10, POCL, "clGetMemObjectInfo knows every query", SHAPE_IMPORT, 0, KNOWN)
QUERY(query_flags_fail, V10, POCL, "CL_MEM_FLAGS cannot be asked for", SHAPE_IMPORT, CL_MEM_FLAGS,
      FAILS)
QUERY(query_offset_fails, V10, POCL, "CL_MEM_OFFSET cannot be asked for", SHAPE_IMPORT,
      CL_MEM_OFFSET, FAILS)
QUERY(query_image_buffer, V10, POCL, "CL_IMAGE_BUFFER of an image is NULL", SHAPE_IMAGE,
      CL_IMAGE_BUFFER, ZERO)
QUERY(query_image_buffer_1d, V10, POCL, "CL_IMAGE_BUFFER of a 1D image is NULL", SHAPE_IMAGE_1D,
      CL_IMAGE_BUFFER, ZERO)
QUERY(query_image_width, V10, POCL, "CL_IMAGE_WIDTH is one too much", SHAPE_IMAGES, CL_IMAGE_WIDTH,
      PLUS_ONE)
QUERY(query_image_width_1d, V10, POCL, "CL_IMAGE_WIDTH of a 1D image is one too much",
      SHAPE_IMAGE_1D, CL_IMAGE_WIDTH, PLUS_ONE)
QUERY(query_image_height, V10, POCL, "CL_IMAGE_HEIGHT is one too much", SHAPE_IMAGES,
      CL_IMAGE_HEIGHT, PLUS_ONE)
QUERY(query_image_depth, V10, POCL, "CL_IMAGE_DEPTH is 1", SHAPE_IMAGES, CL_IMAGE_DEPTH, ONE)
QUERY(query_image_pitch, V10, POCL, "CL_IMAGE_ROW_PITCH is 0", SHAPE_IMAGE, CL_IMAGE_ROW_PITCH,
      ZERO)
QUERY(query_image_element, V10, POCL, "CL_IMAGE_ELEMENT_SIZE is 1", SHAPE_IMAGES,
      CL_IMAGE_ELEMENT_SIZE, ONE)
QUERY(query_image_format, V10, POCL, "CL_IMAGE_FORMAT has another channel order", SHAPE_IMAGES,
      CL_IMAGE_FORMAT, PLUS_ONE)
QUERY(query_image_type, V10, POCL, "CL_MEM_TYPE of an image is a buffer's", SHAPE_IMAGES,
      CL_MEM_TYPE, AS_BUFFER)
QUERY(query_image_offset, V10, POCL, "CL_MEM_OFFSET of an image is 1", SHAPE_IMAGES, CL_MEM_OFFSET,
      ONE)
OTHER(query_image_of_import, V10, POCL, "clGetImageInfo accepts an import")
OTHER(query_supported_formats, V10, POCL, "no image format is reported while an import is alive")

/* Sub-buffers. */
OTHER(sub_origin_ignored, V10, POCL, "a sub-buffer begins where the import begins")
OTHER(sub_size_of_import, V10, POCL, "a sub-buffer is as long as the import")
OTHER(sub_refused, V10, POCL, "imports have no sub-buffers")
OTHER(sub_of_unaligned_refused, V10, POCL, "imports that do not begin a page have no sub-buffers")
OTHER(sub_at_zero_refused, V10, POCL, "a sub-buffer cannot begin at 0")
OTHER(sub_second_refused, V10, POCL, "an import has one sub-buffer")
OTHER(sub_beyond_accepted, V10, POCL, "a sub-buffer may end behind the import")
OTHER(sub_beyond_as_size, V10, POCL,
      "a sub-buffer that ends behind the import is CL_INVALID_BUFFER_SIZE")
OTHER(sub_size_zero_accepted, V10, POCL, "a sub-buffer of 0 bytes is accepted")
OTHER(sub_size_zero_as_value, V10, POCL, "a sub-buffer of 0 bytes is CL_INVALID_VALUE")
OTHER(sub_misaligned_accepted, V10, POCL, "a misaligned origin is accepted")
OTHER(sub_access_accepted, V10, POCL, "a sub-buffer may have more access than the import")
OTHER(sub_host_access_accepted, V10, POCL, "a sub-buffer may have more host access than the import")
OTHER(sub_host_ptr_accepted, V10, POCL, "a sub-buffer with CL_MEM_USE_HOST_PTR is accepted")
OTHER(sub_type_accepted, V10, POCL, "clCreateSubBuffer accepts an unknown type of region")
OTHER(sub_region_null_accepted, V10, POCL, "clCreateSubBuffer accepts region NULL")
OTHER(sub_of_sub_accepted, V10, POCL, "a sub-buffer has sub-buffers")
OTHER(sub_of_sub_as_operation, V10, POCL, "a sub-buffer of a sub-buffer is CL_INVALID_OPERATION")
OTHER(sub_code_needed, V10, POCL, "clCreateSubBuffer with errcode_ret NULL crashes")
OTHER(sub_copied, V10, POCL, "a sub-buffer is a copy of its part of the import")
OTHER(sub_copied_read_only, V10, POCL, "a read-only sub-buffer is a copy of its part of the import")

/* Images. */
OTHER(image_refused, V10, POCL, "imports have no 2D images")
OTHER(image_1d_refused, V10, POCL, "imports have no 1D images")
OTHER(image_1d_of_sub_refused, V10, POCL, "sub-buffers of imports have no 1D images")
OTHER(image_of_sub_refused, V10, POCL, "sub-buffers of imports have no 2D images")
OTHER(image_of_unaligned_refused, V10, POCL, "imports that do not begin a page have no images")
OTHER(image_second_refused, V10, POCL, "an import has one image")
OTHER(image_by_properties_fails, V10, POCL, "clCreateImageWithProperties refuses imports")
OTHER(image_2d_by_properties_fails, V10, POCL,
      "clCreateImageWithProperties makes no 2D image of imports")
OTHER(image_pitch_ignored, V10, POCL, "the row pitch of an image is ignored")
OTHER(image_no_pitch_refused, V10, POCL, "an image without a row pitch is refused")
OTHER(image_origin_ignored, V10, POCL, "an image of a sub-buffer begins where the import begins")
OTHER(image_1d_origin_ignored, V10, POCL,
      "a 1D image of a sub-buffer begins where the import begins")
OTHER(image_of_unaligned_at_page, V10, POCL, "an image of an unaligned import begins at the page")
OTHER(image_copied, V10, POCL, "an image is a copy of the import")
OTHER(image_1d_copied, V10, POCL, "a 1D image is a copy of the import")
OTHER(image_copied_read_only, V10, POCL, "a read-only image is a copy of the import")
OTHER(image_too_large_accepted, V10, POCL, "an image may end behind the import")
OTHER(image_1d_too_large_accepted, V10, POCL, "a 1D image may end behind the import")
OTHER(image_short_pitch_accepted, V10, POCL, "a row pitch below the width is accepted")
OTHER(image_odd_pitch_accepted, V10, POCL, "a row pitch that is no number of pixels is accepted")
OTHER(image_host_ptr_accepted, V10, POCL, "an image on an import may have a host_ptr")
OTHER(image_width_zero_accepted, V10, POCL, "an image of width 0 is accepted")
OTHER(image_access_accepted, V10, POCL, "an image may have more access than the import")
OTHER(image_format_null_accepted, V10, POCL, "an image without a format is accepted")
OTHER(image_format_ignored, V10, POCL, "the channel order of an image is ignored")
OTHER(image_code_needed, V10, POCL, "clCreateImage with errcode_ret NULL crashes")
OTHER(image_samples_accepted, V10, POCL, "an image with samples is accepted")

/* Kernels and other commands. */
USE(kernel_refused, V10, POCL, "kernels cannot use imports", clEnqueueNDRangeKernel, ALWAYS,
    CL_INVALID_OPERATION)
USE(kernel_refused_on_the_second_queue, V10, POCL, "kernels on a second queue cannot use imports",
    clEnqueueNDRangeKernel, ON_SECOND_QUEUE, CL_INVALID_OPERATION)
USE(kernel_refused_out_of_order, V10, POCL, "kernels on an out-of-order queue cannot use imports",
    clEnqueueNDRangeKernel, ON_OUT_OF_ORDER, CL_INVALID_OPERATION)
USE(kernel_refused_with_profiling, V10, POCL,
    "kernels on a queue with profiling cannot use imports", clEnqueueNDRangeKernel, ON_PROFILING,
    CL_INVALID_OPERATION)
USE(kernel_refused_in_the_second_context, V10, POCL,
    "kernels of a second context cannot use imports", clEnqueueNDRangeKernel, IN_SECOND_CONTEXT,
    CL_INVALID_OPERATION)
USE(kernel_refused_on_orphans, V10, POCL,
    "kernels cannot use a derived object whose import is released", clEnqueueNDRangeKernel,
    ON_ORPHAN, CL_INVALID_MEM_OBJECT)
USE(kernel_without_wait_list, V10, POCL, "kernels on imports do not wait for their wait list",
    clEnqueueNDRangeKernel, WITH_WAIT_LIST, NO_WAIT_LIST)
USE(kernel_without_event, V10, POCL, "kernels on imports return no event", clEnqueueNDRangeKernel,
    ALWAYS, NO_EVENT)
USE(kernel_lost_with_wait_list, V10, POCL, "kernels on imports with a wait list do not run",
    clEnqueueNDRangeKernel, WITH_WAIT_LIST, SKIPPED)
USE(kernel_lost_out_of_order, V10, POCL, "kernels on imports do not run on an out-of-order queue",
    clEnqueueNDRangeKernel, ON_OUT_OF_ORDER, SKIPPED)
USE(kernel_lost_with_an_event, V10, POCL, "kernels on imports that give an event do not run",
    clEnqueueNDRangeKernel, WITH_EVENT, SKIPPED)
USE(task_refused, V10, POCL, "clEnqueueTask cannot use imports", clEnqueueTask, ALWAYS,
    CL_INVALID_OPERATION)
USE(native_refused, V10, POCL, "native kernels cannot use imports", clEnqueueNativeKernel, ALWAYS,
    CL_INVALID_OPERATION)
USE(native_lost, V10, POCL, "native kernels on imports do not run", clEnqueueNativeKernel, ALWAYS,
    SKIPPED)
USE(migrate_refused, V10, POCL, "clEnqueueMigrateMemObjects refuses imports",
    clEnqueueMigrateMemObjects, ALWAYS, CL_INVALID_OPERATION)
USE(migrate_refused_for_sub_buffers, V10, POCL,
    "clEnqueueMigrateMemObjects refuses sub-buffers of imports", clEnqueueMigrateMemObjects,
    ON_SUB_BUFFER, CL_INVALID_OPERATION)
OTHER(argument_refused, V10, POCL, "clSetKernelArg refuses imports")
OTHER(argument_of_sub_buffers_refused, V10, POCL, "clSetKernelArg refuses sub-buffers of imports")
OTHER(argument_stale, V10, POCL, "a kernel keeps the first import that an argument got")
OTHER(argument_lost_by_clones, V10, POCL, "clCloneKernel loses imports")
OTHER(kernel_at_enqueue, V10, POCL, "kernels on imports block the enqueue until they have run")
OTHER(finish_early, V10, POCL, "clFinish does not wait for kernels on imports")

/* Names and functions. */
OTHER(name_without_base, V10, POCL, "devices report the types and no base name")
OTHER(name_of_platform_without_base, V10, POCL, "the platform reports the types and no base name")
OTHER(name_without_host, V10, POCL, "host memory is imported and not reported")
OTHER(name_without_types, V10, POCL, "the base name is reported and no type")
OTHER(name_twice, V10, POCL, "the base name is reported twice")
OTHER(name_in_other_case, V10, POCL, "the names of types are in capitals")
OTHER(name_of_protected, V10, POCL, "protected memory is reported and refused")
OTHER(name_of_android, V10, POCL, "Android's buffers are reported and refused")
OTHER(name_cut, V10, POCL, "the size of CL_DEVICE_EXTENSIONS leaves no room for the last name")
OTHER(name_without_separator, V10, POCL, "no space is in front of the extension's name")
OTHER(name_missing_with_versions, V10, POCL,
      "CL_DEVICE_EXTENSIONS_WITH_VERSION does not name the extension")
OTHER(name_of_host_missing_with_versions, V10, POCL,
      "CL_DEVICE_EXTENSIONS_WITH_VERSION does not name the type")
OTHER(name_with_versions_twice, V10, POCL,
      "CL_DEVICE_EXTENSIONS_WITH_VERSION names the extension twice")
OTHER(version_zero, V10, POCL, "the version of the extension is 0.0.0")
OTHER(version_two, V10, POCL, "the version of the extension is 2.0.0")
OTHER(version_of_new_with_old_rules, V10, POCL, "version 1.1.0 is reported and host access refused")
OTHER(version_of_old_with_new_rules, V11, POCL, "version 1.0.0 is reported and host access works")
OTHER(version_of_types_differs, V10, POCL, "the type has another version than the extension")
OTHER(version_of_platform_differs, V10, POCL,
      "the platform reports another version than the device")
OTHER(function_null, V10, POCL,
      "clGetExtensionFunctionAddressForPlatform does not know the function")
OTHER(function_null_without_platform, V10, POCL,
      "clGetExtensionFunctionAddress does not know the function")
OTHER(function_without_platform_broken, V10, POCL,
      "the function of clGetExtensionFunctionAddress refuses every import")
OTHER(function_once, V10, POCL, "the function can be asked for once")

/* dma-bufs, by descriptors that are none. */
IMPORT(descriptor_closed_accepted, V10, POCL, "a closed descriptor is accepted", DMA_BUF_CLOSED,
       CL_SUCCESS)
IMPORT(descriptor_negative_accepted, V10, POCL, "a negative descriptor is accepted",
       DMA_BUF_NEGATIVE, CL_SUCCESS)
IMPORT(descriptor_of_file_accepted, V10, POCL, "the descriptor of a file is accepted", DMA_BUF_FILE,
       CL_SUCCESS)
IMPORT(descriptor_of_others_accepted, V10, POCL,
       "descriptors of pipes, sockets and events are accepted", DMA_BUF_OTHER, CL_SUCCESS)
IMPORT(descriptor_address_null_accepted, V10, POCL, "a dma-buf at NULL is accepted", DMA_BUF_NULL,
       CL_SUCCESS)
OTHER(descriptor_of_others_closed, V10, POCL, "a refused descriptor is closed")

/* Real dma-bufs. */
IMPORT(dma_buf_fails, V10, GUEST, "dma-bufs are refused", DMA_BUF, CL_INVALID_OPERATION)
IMPORT(dma_buf_zero_fails, V10, GUEST, "descriptor 0 is refused", DMA_BUF_ZERO, CL_INVALID_VALUE)
IMPORT(dma_buf_part_fails, V10, GUEST, "a part of a dma-buf is refused", DMA_BUF_PART,
       CL_INVALID_BUFFER_SIZE)
IMPORT(dma_buf_odd_size_fails, V10, GUEST, "a size of a dma-buf that is not whole pages is refused",
       DMA_BUF_ODD_SIZE, CL_INVALID_BUFFER_SIZE)
IMPORT(dma_buf_twice_fails, V10, GUEST, "a dma-buf can be imported once", DMA_BUF_TWICE,
       CL_INVALID_OPERATION)
IMPORT(dma_buf_read_only_fails, V10, GUEST, "a read-only descriptor is refused", DMA_BUF_READ_ONLY,
       CL_INVALID_VALUE)
IMPORT(dma_buf_too_large_accepted, V11, GUEST, "a size beyond the dma-buf is accepted",
       DMA_BUF_TOO_LARGE, CL_SUCCESS)
IMPORT(dma_buf_too_large_as_value, V11, GUEST, "a size beyond the dma-buf is CL_INVALID_VALUE",
       DMA_BUF_TOO_LARGE, CL_INVALID_VALUE)
IMPORT(dma_buf_size_zero_accepted, V11, GUEST, "size 0 stands for a whole dma-buf",
       DMA_BUF_SIZE_ZERO, CL_SUCCESS)
IMPORT(dma_buf_consistent_fails, V11, GUEST, "the consistency property CL_TRUE is refused",
       DMA_BUF_CONSISTENT, CL_INVALID_PROPERTY)
IMPORT(dma_buf_inconsistent_fails, V11, GUEST, "the consistency property CL_FALSE is refused",
       DMA_BUF_INCONSISTENT, CL_INVALID_PROPERTY)
IMPORT(dma_buf_type_second_fails, V11, GUEST, "the type has to be the first property",
       DMA_BUF_TYPE_SECOND, CL_INVALID_PROPERTY)
COPY(dma_buf_copied_once, V10, GUEST, "dma-bufs are copied once", DMA_BUF, COPY_AT_IMPORT)
COPY(dma_buf_copied_at_enqueue, V10, GUEST, "dma-bufs are copied at each enqueue", DMA_BUF,
     COPY_AT_ENQUEUE)
COPY(dma_buf_copied_in_the_queue, V10, GUEST, "dma-bufs are copied around each kernel", DMA_BUF,
     COPY_IN_QUEUE)
OTHER(dma_buf_taken, V10, GUEST, "the import closes the descriptor")
OTHER(dma_buf_closed_at_release, V10, GUEST, "the release closes the application's descriptor")
OTHER(dma_buf_not_duplicated, V10, GUEST,
      "kernels fail once the application has closed the descriptor")
OTHER(dma_buf_read_again, V10, GUEST, "the variable with the descriptor is read at each kernel")
OTHER(dma_buf_variable_changed, V10, GUEST,
      "the import writes -1 to the variable with the descriptor")
OTHER(dma_buf_leaks_descriptor, V10, GUEST, "each import of a dma-buf leaves a descriptor behind")
OTHER(dma_buf_leaks_mapping, V10, GUEST, "each import of a dma-buf leaves a mapping behind")
OTHER(dma_buf_flags_changed, V10, GUEST, "the import makes the descriptor non-blocking")
OTHER(dma_buf_close_on_exec_changed, V10, GUEST, "the import lets the descriptor be closed on exec")
OTHER(dma_buf_inherited, V10, GUEST, "the import's own descriptor is inherited over exec")
OTHER(dma_buf_read_only_as_read_write, V10, GUEST,
      "CL_MEM_FLAGS of a read-only descriptor is CL_MEM_READ_WRITE")
OTHER(dma_buf_offset, V10, GUEST, "the import begins at the second page of the dma-buf")
OTHER(dma_buf_size_of_all, V10, GUEST, "CL_MEM_SIZE is the size of the dma-buf")
OTHER(dma_buf_without_sync, V11, GUEST, "the consistency property CL_TRUE is taken and ignored")

/* cl_khr_external_memory, with the fake dma-bufs. */
EXTERNAL(external_mem_object_as_value, V10, FAKE,
	 "a plain object is CL_INVALID_VALUE for an acquire", true, CL_INVALID_MEM_OBJECT,
	 CL_INVALID_VALUE)
EXTERNAL(external_mem_object_taken, V10, FAKE, "acquires take plain objects", true,
	 CL_INVALID_MEM_OBJECT, CL_SUCCESS)
EXTERNAL(external_queue_as_value, V10, FAKE,
	 "a queue that is none is CL_INVALID_VALUE for an acquire", true, CL_INVALID_COMMAND_QUEUE,
	 CL_INVALID_VALUE)
EXTERNAL(external_list_as_value, V10, FAKE, "a wrong wait list is CL_INVALID_VALUE for an acquire",
	 true, CL_INVALID_EVENT_WAIT_LIST, CL_INVALID_VALUE)
EXTERNAL(external_list_taken, V10, FAKE, "acquires take wrong wait lists", true,
	 CL_INVALID_EVENT_WAIT_LIST, CL_SUCCESS)
EXTERNAL(external_failed_event_taken, V10, FAKE, "acquires take failed events", true,
	 CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST, CL_SUCCESS)
EXTERNAL(external_failed_event_as_list, V10, FAKE, "a failed event is CL_INVALID_EVENT_WAIT_LIST",
	 true, CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST, CL_INVALID_EVENT_WAIT_LIST)
EXTERNAL(external_value_taken, V10, FAKE, "acquires take a count without objects", true,
	 CL_INVALID_VALUE, CL_SUCCESS)
EXTERNAL(external_property_as_value, V10, FAKE, "a wrong property of a dma-buf is CL_INVALID_VALUE",
	 false, CL_INVALID_PROPERTY, CL_INVALID_VALUE)
EXTERNAL(external_property_taken, V10, FAKE, "wrong properties of a dma-buf are taken", false,
	 CL_INVALID_PROPERTY, CL_SUCCESS)
EXTERNAL(external_device_as_property, V10, FAKE, "a device of others is CL_INVALID_PROPERTY", false,
	 CL_INVALID_DEVICE, CL_INVALID_PROPERTY)
EXTERNAL(external_flags_as_property, V10, FAKE, "wrong flags of a dma-buf are CL_INVALID_PROPERTY",
	 false, CL_INVALID_VALUE, CL_INVALID_PROPERTY)
EXTERNAL(external_host_ptr_as_value, V10, FAKE, "a host_ptr beside a dma-buf is CL_INVALID_VALUE",
	 false, CL_INVALID_HOST_PTR, CL_INVALID_VALUE)
EXTERNAL(external_size_as_value, V10, FAKE, "a dma-buf of size 0 is CL_INVALID_VALUE", false,
	 CL_INVALID_BUFFER_SIZE, CL_INVALID_VALUE)
EXTERNAL(external_context_as_value, V10, FAKE,
	 "a context that is none is CL_INVALID_VALUE for a dma-buf", false, CL_INVALID_CONTEXT,
	 CL_INVALID_VALUE)
OTHER(external_acquire_early, V10, FAKE, "acquires do not wait for their list")
OTHER(external_release_early, V10, FAKE, "releases do not wait for their list")
OTHER(external_without_objects_early, V10, FAKE,
      "a command without objects does not wait for its list")
OTHER(external_no_objects_refused, V10, FAKE, "a command without objects is refused")
OTHER(external_first_event_alone, V10, FAKE, "acquires wait for the first event alone")
OTHER(external_needs_an_event, V10, FAKE, "an acquire without an event is refused")
OTHER(external_event_of_a_marker, V10, FAKE, "the event of an acquire is a marker's")
OTHER(external_release_missing, V10, FAKE, "there is no function to release")
OTHER(external_devices_ignored, V10, FAKE, "CL_MEM_DEVICE_HANDLE_LIST_KHR is ignored")
OTHER(external_not_distinct, V10, FAKE, "a dma-buf imported twice is one object")
OTHER(external_copied, V10, FAKE, "a buffer of a dma-buf has memory of its own")
OTHER(external_flags_ignored, V10, FAKE, "flags of a dma-buf are ignored")
OTHER(external_refused_descriptor_closed, V10, FAKE, "a refused request closes the descriptor")
OTHER(external_types_empty, V10, FAKE, "no type of handle is reported")
OTHER(external_platform_without_types, V10, FAKE, "the platform reports no type of handle")
OTHER(external_linear_is_no_subset, V10, FAKE,
      "a type of linear images is no type that can be imported")
OTHER(external_name_missing, V10, FAKE, "cl_khr_external_memory_dma_buf is not named")
OTHER(external_version_zero, V10, FAKE, "the versions of cl_khr_external_memory are 0.0.0")

#undef EXTERNAL
#undef USE
#undef IMPORT
#undef COPY
#undef QUERY
#undef OTHER
