/* SPDX-License-Identifier: Apache-2.0 */
/* The extension's names and versions, and the address of its function. */
#include "mutants.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BASE "cl_arm_import_memory"
#define HOST BASE "_host"
#define DMA_BUF_NAME BASE "_dma_buf"

enum { TEXT = 8192 };

typedef cl_int (*ask_function)(void *of, cl_uint param, size_t size, void *result,
			       size_t *size_ret);

static cl_int names_ask_device(void *device, cl_uint param, size_t size, void *result,
			       size_t *size_ret)
{
	return mutant_next.clGetDeviceInfo(device, param, size, result, size_ret);
}

static cl_int names_ask_platform(void *platform, cl_uint param, size_t size, void *result,
				 size_t *size_ret)
{
	return mutant_next.clGetPlatformInfo(platform, param, size, result, size_ret);
}

/* The word in the text, or NULL. */
static char *names_word_in(char *text, const char *word)
{
	const size_t length = strlen(word);

	for (char *at = strstr(text, word); at; at = strstr(at + 1, word))
		if ((at == text || at[-1] == ' ') && (!at[length] || at[length] == ' '))
			return at;
	return NULL;
}

static void names_word_remove(char *text, const char *word)
{
	char *at = names_word_in(text, word), *end;

	if (!at)
		return;
	end = at + strlen(word);
	end += *end == ' ';
	memmove(at, end, strlen(end) + 1);
}

static void names_word_append(char *text, const char *word)
{
	const size_t length = strlen(text);

	snprintf(text + length, TEXT - length, " %s", word);
}

static void names_word_capitalize(char *text, const char *word)
{
	char *at = names_word_in(text, word);

	for (size_t i = 0; at && i < strlen(word); i++)
		at[i] = (char)toupper(at[i]);
}

static void names_words_join(char *text, const char *word)
{
	char *at = names_word_in(text, word);

	if (at && at > text)
		memmove(at - 1, at, strlen(at) + 1);
}

static void names_change(char *text, bool is_platform)
{
	if (MUTANT(name_without_base) || (MUTANT(name_of_platform_without_base) && is_platform))
		names_word_remove(text, BASE);
	if (MUTANT(name_without_host) || MUTANT(name_without_types))
		names_word_remove(text, HOST);
	if (MUTANT(name_without_types))
		names_word_remove(text, DMA_BUF_NAME);
	if (MUTANT(external_name_missing))
		names_word_remove(text, "cl_khr_external_memory_dma_buf");
	if (MUTANT(name_twice))
		names_word_append(text, BASE);
	if (MUTANT(name_in_other_case)) {
		names_word_capitalize(text, HOST);
		names_word_capitalize(text, DMA_BUF_NAME);
	}
	if (MUTANT(name_of_protected))
		names_word_append(text, BASE "_protected");
	if (MUTANT(name_of_android))
		names_word_append(text, BASE "_android_hardware_buffer");
	if (MUTANT(name_without_separator))
		names_words_join(text, BASE);
}

static cl_int names_put(const void *from, size_t have, size_t size, void *result, size_t *size_ret)
{
	if (result && size < have)
		return CL_INVALID_VALUE;
	if (result)
		memcpy(result, from, have);
	if (size_ret)
		*size_ret = have;
	return CL_SUCCESS;
}

static cl_int names_answer(ask_function ask, void *of, cl_uint param, size_t size, void *result,
			   size_t *size_ret)
{
	const bool is_platform = ask == names_ask_platform;
	char text[TEXT] = "";
	cl_int error = ask(of, param, TEXT / 2, text, NULL);

	if (error)
		return error;
	names_change(text, is_platform);
	error = names_put(text, strlen(text) + 1, size, result, size_ret);
	if (MUTANT(name_cut) && !is_platform && size_ret)
		*size_ret = strlen(text);
	return error;
}

static void names_version_change(cl_name_version *entry, bool is_platform)
{
	const bool is_base = !strcmp(entry->name, BASE);

	if (MUTANT(external_version_zero) && strstr(entry->name, "cl_khr_external_memory"))
		entry->version = 0;
	if (strncmp(entry->name, BASE, strlen(BASE)))
		return;
	if (MUTANT(version_zero))
		entry->version = 0;
	if (MUTANT(version_two))
		entry->version = CL_MAKE_VERSION(2, 0, 0);
	if (MUTANT(version_of_new_with_old_rules))
		entry->version = CL_MAKE_VERSION(1, 1, 0);
	if (MUTANT(version_of_old_with_new_rules))
		entry->version = CL_MAKE_VERSION(1, 0, 0);
	if ((MUTANT(version_of_types_differs) && !is_base) ||
	    (MUTANT(version_of_platform_differs) && is_platform))
		entry->version ^= CL_MAKE_VERSION(0, 1, 0);
}

static bool names_entry_is_dropped(const cl_name_version *entry)
{
	return (MUTANT(name_missing_with_versions) && !strcmp(entry->name, BASE)) ||
	       (MUTANT(name_of_host_missing_with_versions) && !strcmp(entry->name, HOST));
}

static cl_int names_versions_answer(ask_function ask, void *of, cl_uint param, size_t size,
				    void *result, size_t *size_ret)
{
	cl_name_version list[256], changed[257];
	size_t bytes = 0, n = 0;
	cl_int error = ask(of, param, sizeof(list), list, &bytes);

	if (error)
		return error;
	for (size_t i = 0; i < bytes / sizeof(list[0]); i++) {
		if (names_entry_is_dropped(&list[i]))
			continue;
		changed[n] = list[i];
		names_version_change(&changed[n++], ask == names_ask_platform);
		if (MUTANT(name_with_versions_twice) && !strcmp(list[i].name, BASE)) {
			changed[n] = list[i];
			n++;
		}
	}
	return names_put(changed, n * sizeof(changed[0]), size, result, size_ret);
}

static cl_int CL_API_CALL mutant_clGetDeviceInfo(cl_device_id device, cl_device_info param,
						 size_t size, void *result, size_t *size_ret)
{
	const cl_int answer = mutant_external_types(param, size, result, size_ret);

	if (answer <= 0 &&
	    (param == CL_DEVICE_EXTERNAL_MEMORY_IMPORT_HANDLE_TYPES_KHR || param == 0x2052))
		return answer;
	if (param == CL_DEVICE_EXTENSIONS)
		return names_answer(names_ask_device, device, param, size, result, size_ret);
	if (param == CL_DEVICE_EXTENSIONS_WITH_VERSION)
		return names_versions_answer(names_ask_device, device, param, size, result,
					     size_ret);
	return mutant_next.clGetDeviceInfo(device, param, size, result, size_ret);
}

static cl_int CL_API_CALL mutant_clGetPlatformInfo(cl_platform_id platform, cl_platform_info param,
						   size_t size, void *result, size_t *size_ret)
{
	if (param == CL_PLATFORM_EXTERNAL_MEMORY_IMPORT_HANDLE_TYPES_KHR &&
	    mutant_external_types(param, size, result, size_ret) <= 0)
		return CL_SUCCESS;
	if (param == CL_PLATFORM_EXTENSIONS)
		return names_answer(names_ask_platform, platform, param, size, result, size_ret);
	if (param == CL_PLATFORM_EXTENSIONS_WITH_VERSION)
		return names_versions_answer(names_ask_platform, platform, param, size, result,
					     size_ret);
	return mutant_next.clGetPlatformInfo(platform, param, size, result, size_ret);
}

static cl_mem CL_API_CALL names_import_nothing(cl_context context, cl_mem_flags flags,
					       const cl_import_properties_arm *properties,
					       void *memory, size_t size, cl_int *errcode_ret)
{
	(void)context;
	(void)flags;
	(void)properties;
	(void)memory;
	(void)size;
	if (errcode_ret)
		*errcode_ret = CL_INVALID_OPERATION;
	return NULL;
}

static void *names_as_address(mutant_import_function function)
{
	void *address; /* ISO C has no cast from a function to void * */

	memcpy(&address, &function, sizeof(address));
	return address;
}

static bool names_is_import(const char *name)
{
	return name && !strcmp(name, "clImportMemoryARM");
}

static void *CL_API_CALL mutant_clGetExtensionFunctionAddressForPlatform(cl_platform_id platform,
									 const char *name)
{
	static unsigned int count;
	void *next = mutant_next.clGetExtensionFunctionAddressForPlatform(platform, name);

	if (next && mutant_external_function(name))
		return mutant_external_function(name);
	if (MUTANT(external_release_missing) && name && strstr(name, "ReleaseExternal"))
		return NULL;
	if (!names_is_import(name) || !next)
		return next;
	if (MUTANT(function_null) || (MUTANT(function_once) && count++))
		return NULL;
	return names_as_address(mutant_clImportMemoryARM);
}

static void *CL_API_CALL mutant_clGetExtensionFunctionAddress(const char *name)
{
	void *next = mutant_next.clGetExtensionFunctionAddress(name);

	if (!names_is_import(name) || !next)
		return next;
	if (MUTANT(function_null) || MUTANT(function_null_without_platform))
		return NULL;
	return names_as_address(MUTANT(function_without_platform_broken)
					? names_import_nothing
					: mutant_clImportMemoryARM);
}

void mutant_offer_names(struct _cl_icd_dispatch *offered)
{
	MUTANT_OFFER(offered, clGetDeviceInfo);
	MUTANT_OFFER(offered, clGetPlatformInfo);
	MUTANT_OFFER(offered, clGetExtensionFunctionAddressForPlatform);
	MUTANT_OFFER(offered, clGetExtensionFunctionAddress);
}
