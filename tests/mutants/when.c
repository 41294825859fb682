/* SPDX-License-Identifier: Apache-2.0 */
/* Which imports a mutant is wrong about. */
#include "mutants.h"

#include <fcntl.h>
#include <inttypes.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define ACCESSES (CL_MEM_READ_WRITE | CL_MEM_WRITE_ONLY | CL_MEM_READ_ONLY)
#define HOST_ACCESSES (CL_MEM_HOST_WRITE_ONLY | CL_MEM_HOST_READ_ONLY | CL_MEM_HOST_NO_ACCESS)
#define SVM_FLAGS (CL_MEM_SVM_FINE_GRAIN_BUFFER | CL_MEM_SVM_ATOMICS)
#define HOST_PTRS (CL_MEM_USE_HOST_PTR | CL_MEM_ALLOC_HOST_PTR | CL_MEM_COPY_HOST_PTR)
#define KNOWN_FLAGS \
	(ACCESSES | HOST_ACCESSES | HOST_PTRS | SVM_FLAGS | CL_MEM_KERNEL_READ_AND_WRITE)

enum { LINE = 64, LARGE_SIZE = 65536, HUGE_SIZE = 64 << 20, HUNDREDS_COUNT = 500, FAR_PAGE = 16 };

bool mutant_is_dma_buf(const cl_import_properties_arm *properties)
{
	for (; properties && properties[0]; properties += 2)
		if (properties[0] == CL_IMPORT_TYPE_ARM &&
		    properties[1] == CL_IMPORT_TYPE_DMA_BUF_ARM)
			return true;
	return false;
}

static bool when_has_several(cl_mem_flags flags, cl_mem_flags of)
{
	flags &= of;
	return flags & (flags - 1);
}

static bool when_of_flags(enum mutant_import_when when, cl_mem_flags flags)
{
	switch (when) {
	case TWO_ACCESSES:
		return when_has_several(flags, ACCESSES);
	case TWO_HOST_ACCESSES:
		return when_has_several(flags, HOST_ACCESSES);
	case FLAG_ALLOC:
		return flags & CL_MEM_ALLOC_HOST_PTR;
	case FLAG_COPY:
		return flags & CL_MEM_COPY_HOST_PTR && !(flags & CL_MEM_USE_HOST_PTR);
	case FLAG_USE_AND_COPY:
		return flags & CL_MEM_COPY_HOST_PTR && flags & CL_MEM_USE_HOST_PTR;
	case FLAG_UNKNOWN:
		return flags & ~(cl_mem_flags)KNOWN_FLAGS;
	case FLAG_SVM:
		return flags & SVM_FLAGS;
	case FLAG_KERNEL:
		return flags & CL_MEM_KERNEL_READ_AND_WRITE;
	case READ_ONLY:
		return flags & CL_MEM_READ_ONLY;
	case WRITE_ONLY:
		return flags & CL_MEM_WRITE_ONLY;
	case NO_FLAGS:
		return !flags;
	case HOST_WRITE_ONLY:
		return flags & CL_MEM_HOST_WRITE_ONLY;
	case HOST_READ_ONLY:
		return flags & CL_MEM_HOST_READ_ONLY;
	case HOST_NO_ACCESS:
		return flags & CL_MEM_HOST_NO_ACCESS;
	case USE_HOST_PTR:
		return flags & CL_MEM_USE_HOST_PTR;
	default:
		return false;
	}
}

static cl_import_properties_arm when_listed_type(const cl_import_properties_arm *list)
{
	for (; list && list[0]; list += 2)
		if (list[0] == CL_IMPORT_TYPE_ARM)
			return list[1];
	return CL_IMPORT_TYPE_HOST_ARM;
}

static bool when_is_type(cl_import_properties_arm type)
{
	return type == CL_IMPORT_TYPE_HOST_ARM || type == CL_IMPORT_TYPE_DMA_BUF_ARM ||
	       type == CL_IMPORT_TYPE_PROTECTED_ARM ||
	       type == CL_IMPORT_TYPE_ANDROID_HARDWARE_BUFFER_ARM;
}

/* Every name of a property in the headers is close to the others. */
static bool when_is_property(cl_import_properties_arm name)
{
	return name >= CL_IMPORT_TYPE_ARM - 0x10 && name <= CL_IMPORT_TYPE_ARM + 0x40;
}

static bool when_consistency_is(const cl_import_properties_arm *list, cl_bool value)
{
	for (; list && list[0]; list += 2)
		if (list[0] == CL_IMPORT_DMA_BUF_DATA_CONSISTENCY_WITH_HOST_ARM)
			return (cl_bool)list[1] == value;
	return false;
}

static bool when_of_list(enum mutant_import_when when, const cl_import_properties_arm *list)
{
	const cl_import_properties_arm type = when_listed_type(list);

	switch (when) {
	case PROPERTY_UNKNOWN:
		return list && list[0] && !when_is_property(list[0]);
	case PROPERTY_UNKNOWN_SECOND:
		return list && when_is_property(list[0]) && list[2] && !when_is_property(list[2]);
	case TYPE_UNKNOWN:
		return type && !when_is_type(type) && !when_is_type((int)type);
	case TYPE_HIGH_BITS:
		return !when_is_type(type) && when_is_type((int)type);
	case TYPE_ZERO:
		return !type;
	case EMPTY_LIST:
		return list && !list[0];
	case TYPE_LISTED:
		return list && list[0] && type == CL_IMPORT_TYPE_HOST_ARM;
	case DMA_BUF_CONSISTENT:
		return when_consistency_is(list, CL_TRUE);
	case DMA_BUF_INCONSISTENT:
		return when_consistency_is(list, CL_FALSE);
	case DMA_BUF_TYPE_SECOND:
		return list && list[0] && list[0] != CL_IMPORT_TYPE_ARM && list[2];
	default:
		return false;
	}
}

static bool when_is_mapped(uintptr_t at)
{
	unsigned char resident;

	return !mincore((void *)(at / mutant_page() * mutant_page()), mutant_page(), &resident);
}

/* Of the pages of the range, counted from @from; a range has at most some hundred pages here. */
static bool when_has_hole(uintptr_t start, size_t size, size_t from)
{
	for (uintptr_t at = start / mutant_page() * mutant_page() + from * mutant_page();
	     at < start + size; at += mutant_page())
		if (!when_is_mapped(at))
			return true;
	return false;
}

static bool when_of_hole(enum mutant_import_when when, const struct mutant_request *r)
{
	const uintptr_t start = (uintptr_t)r->memory, end = start + r->size;
	bool first, last;

	if (!r->size || end < start || r->size > HUGE_SIZE || !when_has_hole(start, r->size, 0))
		return false;
	first = when_is_mapped(start);
	last = when_is_mapped(end - 1);
	switch (when) {
	case HOLE_FIRST:
		return !first && last;
	case HOLE_MIDDLE:
		return first && last;
	case HOLE_FAR:
		return !when_has_hole(start, FAR_PAGE * mutant_page(), 0);
	case HOLE_LAST:
		return first && !last;
	case HOLE_ALL:
		return r->size <= mutant_page() && !first && start >= mutant_page();
	case HOLE_READERS:
		return r->flags & CL_MEM_READ_ONLY;
	case HOLE_UNALIGNED:
		return start % mutant_page();
	default:
		return false;
	}
}

static bool when_of_refused(enum mutant_import_when when, const struct mutant_request *r)
{
	const uintptr_t start = (uintptr_t)r->memory;

	switch (when) {
	case NULL_CONTEXT:
		return !r->context;
	case NULL_MEMORY:
		return !r->memory && !mutant_is_dma_buf(r->properties);
	case SIZE_ZERO:
		return !r->size && r->memory && !mutant_is_dma_buf(r->properties);
	case LOW_ADDRESS:
		return start && start < mutant_page();
	case KERNEL_ADDRESS:
		return start > INTPTR_MAX;
	case ADDRESS_OVERFLOW:
		return start + r->size < start && r->size != SIZE_MAX;
	case SIZE_MAXIMUM:
		return r->size == SIZE_MAX;
	case NOT_ACCESSIBLE:
		return r->error == CL_INVALID_OPERATION && r->memory && r->size < HUGE_SIZE &&
		       !mutant_is_dma_buf(r->properties) && !when_has_hole(start, r->size, 0);
	case REFUSED:
		return r->error;
	default:
		return false;
	}
}

/* A line of /proc/self/maps for the address, or "". */
static void when_read_mapping(uintptr_t at, char *line, size_t room, uintptr_t *end)
{
	FILE *maps = fopen("/proc/self/maps", "re");
	uintptr_t start;

	*end = 0;
	while (maps && fgets(line, (int)room, maps))
		if (sscanf(line, "%" SCNxPTR "-%" SCNxPTR, &start, end) == 2 && start <= at &&
		    at < *end) {
			fclose(maps);
			return;
		}
	line[0] = 0;
	if (maps)
		fclose(maps);
}

static int when_visit_program(struct dl_phdr_info *info, size_t size, void *address)
{
	const uintptr_t at = *(uintptr_t *)address;

	(void)size;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *part = &info->dlpi_phdr[i];

		if (part->p_type == PT_LOAD && at >= info->dlpi_addr + part->p_vaddr &&
		    at - info->dlpi_addr - part->p_vaddr < part->p_memsz)
			return 1;
	}
	return -1; /* the program comes first, and libraries do not matter */
}

/* A large static variable has no file in /proc/self/maps. */
static bool when_in_program(uintptr_t at)
{
	return dl_iterate_phdr(when_visit_program, &at) > 0;
}

static bool when_of_mapping(enum mutant_import_when when, const struct mutant_request *r)
{
	char line[4400];
	unsigned char resident = 1;
	uintptr_t end, start = (uintptr_t)r->memory;

	when_read_mapping(start, line, sizeof(line), &end);
	switch (when) {
	case OF_A_FILE:
		return strstr(line, " /") && !strstr(line, "/memfd:") &&
		       !strstr(line, "/dev/zero") && !when_in_program(start);
	case OF_SHARED_MEMORY:
		return strstr(line, "/memfd:") || strstr(line, "/dev/zero");
	case ON_THE_STACK:
		return strstr(line, "[stack]");
	case IN_THE_HEAP:
		return strstr(line, "[heap]");
	case IN_THE_PROGRAM:
		return when_in_program(start);
	case UNTOUCHED:
		mincore((void *)(start / mutant_page() * mutant_page()), mutant_page(), &resident);
		return !(resident & 1);
	case READ_ONLY_PAGES:
		return *line && strchr(line, ' ')[2] == '-';
	case TWO_MAPPINGS:
		return end && start + r->size > end;
	default:
		return false;
	}
}

struct overlap {
	const struct mutant_request *request;
	bool pages, access;
};

static void when_overlap_visit(struct mutant_object *object, void *arg)
{
	struct overlap *overlap = arg;
	const size_t page = mutant_page();
	const uintptr_t start = (uintptr_t)overlap->request->memory / page * page,
			end = (uintptr_t)overlap->request->memory + overlap->request->size;

	if (object->shape != SHAPE_IMPORT || object->is_dma_buf || start == end)
		return;
	if ((uintptr_t)object->memory < (end + page - 1) / page * page &&
	    start < (uintptr_t)object->memory + object->size) {
		overlap->pages = true;
		overlap->access |= (object->flags ^ overlap->request->flags) & ACCESSES;
	}
}

static bool when_of_others(enum mutant_import_when when, const struct mutant_request *r)
{
	static const void *released;
	struct overlap overlap = { .request = r };

	if (when == SECOND)
		return mutant_count_live();
	if (when == HUNDREDS)
		return mutant_count_live() >= HUNDREDS_COUNT;
	if (when == SECOND_CONTEXT)
		return r->context != mutant_first_context();
	if (when == THREAD)
		return !mutant_is_main_thread();
	mutant_each(when_overlap_visit, &overlap);
	if (when == AFTER_RELEASE) {
		const void *before = released;

		released = r->memory;
		return before == r->memory && !overlap.pages;
	}
	if (when == SAME_PAGE_UNALIGNED)
		return overlap.pages && (uintptr_t)r->memory % mutant_page();
	return when == SAME_PAGES ? overlap.pages
				  : when == OTHER_ACCESS_SAME_PAGE && overlap.access;
}

static bool when_of_size(enum mutant_import_when when, const struct mutant_request *r)
{
	switch (when) {
	case UNALIGNED:
		return (uintptr_t)r->memory % mutant_page();
	case UNALIGNED_LINE:
		return (uintptr_t)r->memory % LINE;
	case UNALIGNED_ODD:
		return (uintptr_t)r->memory & 1;
	case ODD_SIZE:
		return r->size % 4;
	case ONE_BYTE:
		return r->size == 1;
	case SMALL:
		return r->size < mutant_page();
	case LARGE:
		return r->size >= LARGE_SIZE;
	case HUGE:
		return r->size >= HUGE_SIZE;
	default:
		return false;
	}
}

struct same_file {
	struct stat file;
	bool found;
};

static void when_same_file_visit(struct mutant_object *object, void *arg)
{
	struct same_file *same = arg;
	struct stat other;

	if (object->shape == SHAPE_IMPORT && object->is_dma_buf && !fstat(object->fd, &other) &&
	    other.st_ino == same->file.st_ino && other.st_dev == same->file.st_dev)
		same->found = true;
}

static bool when_is_twice(int fd)
{
	struct same_file same = { .found = false };

	if (!fstat(fd, &same.file))
		mutant_each(when_same_file_visit, &same);
	return same.found;
}

static bool when_of_bad_descriptor(enum mutant_import_when when, const struct mutant_request *r,
				   int fd)
{
	struct stat file;

	switch (when) {
	case DMA_BUF_NEGATIVE:
		return r->error && fd < 0;
	case DMA_BUF_CLOSED:
		return r->error && fd >= 0 && fstat(fd, &file);
	case DMA_BUF_FILE:
		return r->error && !fstat(fd, &file) && S_ISREG(file.st_mode);
	case DMA_BUF_OTHER:
		return r->error && !fstat(fd, &file) && !S_ISREG(file.st_mode);
	case DMA_BUF_TOO_LARGE:
		return r->error && r->size && lseek(fd, 0, SEEK_END) >= 0;
	case DMA_BUF_SIZE_ZERO:
		return !r->size;
	default:
		return false;
	}
}

static bool when_of_dma_buf(enum mutant_import_when when, const struct mutant_request *r)
{
	int fd;

	if (when == DMA_BUF_NULL)
		return !r->memory;
	if (!r->memory || !when_is_mapped((uintptr_t)r->memory) ||
	    (uintptr_t)r->memory < mutant_page())
		return false;
	fd = *(int *)r->memory;
	if (r->error)
		return when_of_bad_descriptor(when, r, fd);
	switch (when) {
	case DMA_BUF:
		return true;
	case DMA_BUF_ZERO:
		return !fd;
	case DMA_BUF_PART:
		return (off_t)r->size < lseek(fd, 0, SEEK_END);
	case DMA_BUF_ODD_SIZE:
		return r->size % mutant_page();
	case DMA_BUF_TWICE:
		return when_is_twice(fd);
	case DMA_BUF_READ_ONLY:
		return (fcntl(fd, F_GETFL) & O_ACCMODE) == O_RDONLY;
	default:
		return false;
	}
}

/* Faults in flags, lists and addresses also hold for requests that are wrong in another way. */
bool mutant_import_is(enum mutant_import_when when, const struct mutant_request *r)
{
	const bool is_refusal = when < VALID;

	if (when >= DMA_BUF_CONSISTENT || (when >= PROPERTY_UNKNOWN && when <= TYPE_ZERO) ||
	    when == EMPTY_LIST || when == TYPE_LISTED)
		return when_of_list(when, r->properties);
	if ((when >= DMA_BUF_CLOSED && when <= DMA_BUF_NULL) || when >= DMA_BUF)
		return mutant_is_dma_buf(r->properties) && when_of_dma_buf(when, r);
	if (is_refusal && r->error)
		return when_of_refused(when, r) || when_of_flags(when, r->flags) ||
		       (!mutant_is_dma_buf(r->properties) && when_of_hole(when, r));
	if (is_refusal || r->error || mutant_is_dma_buf(r->properties))
		return false;
	return when == VALID || when_of_size(when, r) || when_of_flags(when, r->flags) ||
	       when_of_others(when, r) || when_of_mapping(when, r);
}
