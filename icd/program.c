/* SPDX-License-Identifier: Apache-2.0 */
#include "icd/program.h"

#include <errno.h>
#include <link.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "import/import.h"
#include "util/fork.h"
#include "util/log.h"

/* FFmpeg uses no device without cl_khr_image2d_from_buffer, and makes images of imports alone. */
static const char *const program_names[] = { "ffmpeg", "ffplay" };

bool program_makes_images_of_imports(void)
{
	for (size_t i = 0; i < sizeof(program_names) / sizeof(program_names[0]); i++)
		if (!strcmp(program_invocation_short_name, program_names[i]))
			return true;
	return false;
}

static atomic_bool program_function, program_context, program_hintless;
static atomic_uint program_missing; /* the process that misses images; 0: none */

void program_has_function(void)
{
	atomic_store_explicit(&program_function, true, memory_order_relaxed);
}

void program_has_context(void)
{
	atomic_store_explicit(&program_context, true, memory_order_relaxed);
}

void program_needs_no_hint(void)
{
	if (!atomic_load_explicit(&program_hintless, memory_order_relaxed))
		atomic_store_explicit(&program_hintless, true, memory_order_relaxed);
}

void program_misses_images(void)
{
	atomic_store_explicit(&program_missing, fork_generation(), memory_order_relaxed);
}

static bool program_is_in(const struct dl_phdr_info *info, uintptr_t address)
{
	for (size_t i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *segment = &info->dlpi_phdr[i];

		if (segment->p_type == PT_LOAD &&
		    address - (info->dlpi_addr + segment->p_vaddr) < segment->p_memsz)
			return true;
	}
	return false;
}

/* Ends at the layer or at libclimport: 1 for libclimport. */
static int program_find_first(struct dl_phdr_info *info, size_t size, void *is_library)
{
	(void)size;
	if (program_is_in(info, (uintptr_t)program_find_first))
		return 1;
	*(bool *)is_library = program_is_in(info, (uintptr_t)import_put);
	return *(bool *)is_library;
}

/*
 * A program that is linked to libclimport has clImportMemoryARM without asking.  Libraries are listed
 * in the order of loading, so libclimport comes before the layer if not the layer has brought it.
 */
static bool program_is_linked(void)
{
	bool is_library = false;

	dl_iterate_phdr(program_find_first, &is_library);
	return is_library;
}

/* At exit it is certain that the program has imported nothing. */
__attribute__((destructor)) static void program_hint(void)
{
	if (atomic_load_explicit(&program_missing, memory_order_relaxed) != fork_generation() ||
	    atomic_load_explicit(&program_hintless, memory_order_relaxed) ||
	    !atomic_load_explicit(&program_context, memory_order_relaxed))
		return;
	if (atomic_load_explicit(&program_function, memory_order_relaxed) || program_is_linked())
		log_error("the program has clImportMemoryARM and imported nothing: if the program "
			  "needs "
			  "cl_khr_image2d_from_buffer, climport run --image2d or "
			  "CLIMPORT_IMAGE2D_FROM_BUFFER=1 reports the name, for imports alone");
}
