/* SPDX-License-Identifier: Apache-2.0 */
/* The entry points of the layer, under each kind of loader. */
#include "fixture.h"
#include "text.h"

#include <dlfcn.h>
#include <sys/mman.h>

typedef cl_int(CL_API_CALL *init_with_properties)(cl_uint, const struct _cl_icd_dispatch *,
						  cl_uint *, const struct _cl_icd_dispatch **,
						  const cl_ulong *properties);

/* Numbers of entries in loaders' tables. */
static const struct table_size {
	const char *name;
	size_t entries;
} table_sizes[] = { { "100", 100 }, { "149", 149 }, { "150", 150 }, { "200", 200 } };

/* Places the table at the end of a page.  A read behind the table faults. */
static void **table_at_end_of_page(size_t entries)
{
	size_t size = entries * sizeof(void *);
	unsigned char *at = pages_map(2);
	void **table = (void **)(at + PAGE - size);

	EXPECT_EQ(mprotect(at + PAGE, PAGE, PROT_NONE), 0);
	memset(table, 0x5a, size); /* entries of a newer loader, which must not be called */
	memcpy(table, &stub_dispatch, size < sizeof(stub_dispatch) ? size : sizeof(stub_dispatch));
	return table;
}

static cl_int layer_init_entries(void *copy, size_t entries, void **table, cl_uint *count,
				 void *const **slots)
{
	pfn_clInitLayer function = (pfn_clInitLayer)dlsym(copy, "clInitLayer");
	const struct _cl_icd_dispatch *dispatch = NULL;
	cl_int err = function((cl_uint)entries, (const struct _cl_icd_dispatch *)table, count,
			      &dispatch);

	*slots = (void *const *)dispatch;
	return err;
}

TEST_EACH(loads, struct table_size, table_sizes,
	  "The layer accepts a table of 100, 149, 150 or 200 entries, and reads nothing behind the "
	  "table.")
{
	void *const *slots;
	void **table;
	cl_uint count = 0;

	fixture_reset();
	table = table_at_end_of_page(row->entries);
	EXPECT_EQ(layer_init_entries(layer_copy(), row->entries, table, &count, &slots),
		  CL_SUCCESS);
	EXPECT_EQ(count, row->entries < TABLE_ENTRIES ? row->entries : TABLE_ENTRIES);
	for (cl_uint i = 0; i < count; i++)
		EXPECT(table[i] || !slots[i]);
}

TEST(too_small,
     "A table without the functions that an import needs is CL_INVALID_VALUE, and is not read.")
{
	void *const *slots;
	cl_uint count = 7;

	fixture_reset();
	EXPECT_EQ(layer_init_entries(layer_copy(), 10, table_at_end_of_page(10), &count, &slots),
		  CL_INVALID_VALUE);
	EXPECT_EQ(layer_init_entries(layer_copy(), 0, table_at_end_of_page(1), &count, &slots),
		  CL_INVALID_VALUE);
	EXPECT_EQ(count, 7);
}

TEST(init_calls_nothing,
     "The layer's initialization calls no OpenCL function, since the loader is not initialized "
     "yet.")
{
	void *const *slots;
	cl_uint count;

	fixture_reset();
	EXPECT_EQ(layer_init_entries(layer_copy(), 149, table_at_end_of_page(149), &count, &slots),
		  CL_SUCCESS);
	EXPECT_EQ(stub_calls(NULL), 0);
	EXPECT_EQ(stub_calls("clGetExtensionFunctionAddress"), 0);
	EXPECT_EQ(stub_calls("clGetExtensionFunctionAddressForPlatform"), 0);
}

TEST(null_slots_stay_null, "If the target's slot is NULL, the layer leaves the slot NULL.")
{
	void *copy, **table, *const *slots;
	cl_uint count;

	fixture_reset();
	copy = layer_copy();
	table = table_at_end_of_page(TABLE_ENTRIES);
	for (size_t i = 0; i < TABLE_ENTRIES; i++) {
		void *was = table[i];

		table[i] = NULL;
		EXPECT_EQ(layer_init_entries(copy, TABLE_ENTRIES, table, &count, &slots),
			  CL_SUCCESS);
		EXPECT(!slots[i]);
		table[i] = was;
	}
}

TEST(works_on_1_2, "If the driver's table ends with OpenCL 1.2, imports work.")
{
	unsigned char *memory;
	cl_mem mem;

	fixture_reset();
	stub_set(STUB_CL12, 1);
	fixture_open();
	memory = pages_map(1);
	mem = fixture_import_host(CL_MEM_READ_WRITE, memory, 4096);
	fixture_increment(mem);
	EXPECT_EQ(memory[0], 1);
	cl.clReleaseMemObject(mem);
	fixture_close();
}

TEST(bad_arguments, "NULL arguments are CL_INVALID_VALUE.")
{
	void *copy;
	const struct _cl_icd_dispatch *dispatch;
	pfn_clInitLayer function;
	cl_uint count;

	fixture_reset();
	copy = layer_copy();
	function = (pfn_clInitLayer)dlsym(copy, "clInitLayer");
	EXPECT_EQ(function(TABLE_ENTRIES, NULL, &count, &dispatch), CL_INVALID_VALUE);
	EXPECT_EQ(function(TABLE_ENTRIES, &stub_dispatch, NULL, &dispatch), CL_INVALID_VALUE);
	EXPECT_EQ(function(TABLE_ENTRIES, &stub_dispatch, &count, NULL), CL_INVALID_VALUE);
}

TEST(init_with_properties,
     "clInitLayerWithProperties works without properties and with an empty list.")
{
	static const cl_ulong none[] = { 0 }, unknown[] = { 0x7777, 1, 0 };
	const struct _cl_icd_dispatch *dispatch = NULL;
	init_with_properties function;
	cl_uint count = 0;

	fixture_reset();
	function = (init_with_properties)dlsym(layer_copy(), "clInitLayerWithProperties");
	EXPECT(function);
	EXPECT_EQ(function(150, (void *)table_at_end_of_page(150), &count, &dispatch, NULL),
		  CL_SUCCESS);
	EXPECT(count && dispatch && dispatch->clGetPlatformInfo);
	EXPECT_EQ(function(149, &stub_dispatch, &count, &dispatch, none), CL_SUCCESS);
	EXPECT(function(149, &stub_dispatch, &count, &dispatch, unknown) < 0);
}

TEST(layer_info, "CL_LAYER_API_VERSION is 100, and both calls of the query agree.")
{
	pfn_clGetLayerInfo info;
	cl_layer_api_version version[2] = { 0, 77 };
	size_t size = 0;

	fixture_reset();
	info = (pfn_clGetLayerInfo)dlsym(layer_copy(), "clGetLayerInfo");
	EXPECT(info);
	EXPECT_EQ(info(CL_LAYER_API_VERSION, 0, NULL, &size), CL_SUCCESS);
	EXPECT_EQ(size, sizeof(*version));
	EXPECT_EQ(info(CL_LAYER_API_VERSION, size, version, NULL), CL_SUCCESS);
	EXPECT_EQ(version[0], CL_LAYER_API_VERSION_100);
	EXPECT_EQ(version[1], 77);
	EXPECT_EQ(info(CL_LAYER_API_VERSION, 3, version, &size), CL_INVALID_VALUE);
	EXPECT_EQ(info(0, sizeof(version), version, &size), CL_INVALID_VALUE);
}

TEST(stays_loaded,
     "dlclose leaves the layer mapped, since drivers may still call the layer's callbacks.")
{
	void *copy, *function;
	Dl_info info;

	fixture_reset();
	copy = layer_copy();
	function = dlsym(copy, "clInitLayer");
	EXPECT_EQ(dlclose(copy), 0);
	EXPECT(dladdr(function, &info) && info.dli_fname);
}

TEST(listed_twice,
     "If a loader lists the library twice, the second initialization fails and the first keeps "
     "working.")
{
	char text[512];
	void *copy, *const *slots;
	struct _cl_icd_dispatch merged;
	cl_platform_id platform;
	cl_uint count;

	fixture_reset();
	copy = layer_copy();
	layer_init(copy, &stub_dispatch, &merged);
	EXPECT(layer_init_entries(copy, TABLE_ENTRIES, (void **)&merged, &count, &slots) < 0);
	EXPECT_EQ(merged.clGetPlatformIDs(1, &platform, NULL), CL_SUCCESS);
	EXPECT_EQ(merged.clGetPlatformInfo(platform, CL_PLATFORM_EXTENSIONS, sizeof(text), text,
					   NULL),
		  CL_SUCCESS);
	EXPECT_EQ(text_count_word(text, "cl_arm_import_memory"), 1);
}

TEST(stacked, "If two copies of the layer are stacked, names are reported once and imports work.")
{
	struct _cl_icd_dispatch lower;
	unsigned char *memory, byte;
	char text[512];
	cl_int err;
	cl_mem mem;

	fixture_reset();
	fixture_open();
	cl.clReleaseProgram(fix.program);
	cl.clReleaseCommandQueue(fix.queue);
	cl.clReleaseContext(fix.context);
	lower = cl;
	layer_init(layer_copy(), &lower, &cl);
	fix.context = cl.clCreateContext(NULL, 1, fix.device, NULL, NULL, &err);
	fix.queue = fixture_create_queue(0);
	fix.program = NULL;
	fix.import = (import_function)cl.clGetExtensionFunctionAddress("clImportMemoryARM");
	EXPECT_EQ(cl.clGetPlatformInfo(fix.platform, CL_PLATFORM_EXTENSIONS, sizeof(text), text,
				       NULL),
		  CL_SUCCESS);
	EXPECT_EQ(text_count_word(text, "cl_arm_import_memory"), 1);
	EXPECT_EQ(text_count_word(text, "cl_arm_import_memory_host"), 1);
	EXPECT_EQ(text_count_word(text, "cl_arm_import_memory_dma_buf"), 1);
	memory = pages_map(1);
	mem = fixture_import_host(CL_MEM_READ_WRITE, memory, 4096);
	EXPECT_EQ(cl.clEnqueueReadBuffer(fix.queue, mem, CL_TRUE, 0, 1, &byte, 0, NULL, NULL),
		  CL_INVALID_OPERATION);
	EXPECT_EQ(cl.clReleaseMemObject(mem), CL_SUCCESS);
	EXPECT(!stub_is_live(mem, STUB_MEM));
	fixture_close();
}

TEST(exported_symbols,
     "The library exports the entry points that a layer must have and no other symbol.")
{
	static const char *const wanted[] = { "clGetLayerInfo", "clInitLayer",
					      "clInitLayerWithProperties" };
	char command[1024], name[256], type;
	unsigned found = 0;
	FILE *nm;

	snprintf(command, sizeof(command), "nm -D --defined-only --format=posix '%s'",
		 getenv("TEST_LAYER") ? getenv("TEST_LAYER") : LAYER_PATH);
	nm = popen(command, "r");
	while (fscanf(nm, "%255s %c%*[^\n]", name, &type) == 2) {
		char *version = strchr(name, '@');

		if (version)
			*version = 0;
		if (type == 'A') /* the symbol version itself */
			continue;
		if (found >= 3 || strcmp(name, wanted[found]))
			printf("# %s\n", name);
		EXPECT(found < 3 && !strcmp(name, wanted[found]));
		found++;
	}
	EXPECT_EQ(pclose(nm), 0);
	EXPECT_EQ(found, 3);
}

TEST(disabled, "With CLIMPORT_DISABLE=1 every function is the driver's.")
{
	struct _cl_icd_dispatch merged;

	fixture_reset();
	setenv("CLIMPORT_DISABLE", "1", 1);
	layer_init(layer_copy(), &stub_dispatch, &merged);
	EXPECT(!memcmp(&merged, &stub_dispatch, sizeof(merged)));
	unsetenv("CLIMPORT_DISABLE");
}

TEST(enabled, "With CLIMPORT_DISABLE=0, empty, or a value that is not understood, the layer works.")
{
	static const char *const values[] = { "0", "", "yes", "10" };

	for (size_t i = 0; i < 4; i++) {
		fixture_reset();
		setenv("CLIMPORT_DISABLE", values[i], 1);
		fixture_open();
		EXPECT(fix.import);
		fixture_close();
	}
	unsetenv("CLIMPORT_DISABLE");
}
