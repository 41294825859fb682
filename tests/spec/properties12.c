/* SPDX-License-Identifier: Apache-2.0 */
/* The properties added after revision 6. */
#include "dma_buf.h"
#include "kernels.h"

typedef cl_import_properties_arm property;

#define CONSISTENCY CL_IMPORT_DMA_BUF_DATA_CONSISTENCY_WITH_HOST_ARM

static cl_int import_error(const property *properties, void *memory)
{
	cl_int error = 1;

	released_later(spec.import(spec.context, CL_MEM_READ_WRITE, properties, memory, spec.page,
				   &error));
	return error;
}

/* Version 1.0.0 is without the property in revision 6, and with the property in 10 and 11. */
static void expect_consistency(cl_bool value)
{
	struct dma_buf *buf = dma_buf_get(spec.page);
	const property list[] = { CL_IMPORT_TYPE_ARM, CL_IMPORT_TYPE_DMA_BUF_ARM, CONSISTENCY,
				  value, 0 };
	cl_int error = import_error(list, &buf->fd);

	if (spec.version < VERSION_1_1_0 && !spec.exact)
		EXPECT(error == CL_SUCCESS || error == CL_INVALID_PROPERTY);
	else
		EXPECT_EQ(error, CL_SUCCESS);
}

TEST(consistency_false,
     "R12-03 Valid <properties> are: CL_IMPORT_DMA_BUF_DATA_CONSISTENCY_WITH_HOST_ARM")
{
	expect_consistency(CL_FALSE);
}

TEST(consistency_true,
     "R12-03 Valid <properties> are: CL_IMPORT_DMA_BUF_DATA_CONSISTENCY_WITH_HOST_ARM")
{
	expect_consistency(CL_TRUE);
}

/* Needs no dma-buf: the list is right, the descriptor is not. */
TEST(consistency_is_known,
     "R12-03 Valid <properties> are: CL_IMPORT_DMA_BUF_DATA_CONSISTENCY_WITH_HOST_ARM")
{
	const property list[] = { CONSISTENCY, CL_TRUE, CL_IMPORT_TYPE_ARM,
				  CL_IMPORT_TYPE_DMA_BUF_ARM, 0 };
	int none = -1;

	need_dma_buf();
	EXPECT_EXACT(spec_import_error(CL_MEM_READ_WRITE, list, &none, spec.page),
		     CL_INVALID_VALUE);
}

static void expect_bad_consistency(property value)
{
	const property list[] = { CL_IMPORT_TYPE_ARM, CL_IMPORT_TYPE_DMA_BUF_ARM, CONSISTENCY,
				  value, 0 };
	int none = -1;

	need_dma_buf();
	EXPECT_EXACT(spec_import_error(CL_MEM_READ_WRITE, list, &none, spec.page),
		     CL_INVALID_PROPERTY);
}

TEST(consistency_of_two,
     "R12-18 CL_INVALID_PROPERTY when invalid properties or combination of properties are passed.")
{
	expect_bad_consistency(2);
}

TEST(consistency_of_minus_one,
     "R12-18 CL_INVALID_PROPERTY when invalid properties or combination of properties are passed.")
{
	expect_bad_consistency(-1);
}

/* The text defines the property for dma-bufs, and leaves open its meaning for other types. */
static void expect_combination(const property *list)
{
	cl_int error;

	need_host();
	if (spec.exact)
		EXPECT_EQ(spec_import_error(CL_MEM_READ_WRITE, list, spec_map_pages(1), spec.page),
			  CL_INVALID_PROPERTY);
	error = import_error(list, spec_map_pages(1));
	EXPECT(error == CL_SUCCESS || error == CL_INVALID_PROPERTY);
}

TEST(consistency_of_host_memory,
     "R12-18 CL_INVALID_PROPERTY when invalid properties or combination of properties are passed.")
{
	expect_combination((property[]){ CL_IMPORT_TYPE_ARM, CL_IMPORT_TYPE_HOST_ARM, CONSISTENCY,
					 CL_TRUE, 0 });
}

TEST(consistency_of_the_default_type,
     "R12-18 CL_INVALID_PROPERTY when invalid properties or combination of properties are passed.")
{
	expect_combination((property[]){ CONSISTENCY, CL_FALSE, 0 });
}

TEST(plane_of_host_memory,
     "R12-18 CL_INVALID_PROPERTY when invalid properties or combination of properties are passed.")
{
	expect_combination((property[]){ CL_IMPORT_TYPE_ARM, CL_IMPORT_TYPE_HOST_ARM,
					 CL_IMPORT_ANDROID_HARDWARE_BUFFER_PLANE_INDEX_ARM, 0, 0 });
}

TEST(layer_of_host_memory,
     "R12-18 CL_INVALID_PROPERTY when invalid properties or combination of properties are passed.")
{
	expect_combination((property[]){ CL_IMPORT_TYPE_ARM, CL_IMPORT_TYPE_HOST_ARM,
					 CL_IMPORT_ANDROID_HARDWARE_BUFFER_LAYER_INDEX_ARM, 0, 0 });
}

#define R12_27                                                                                 \
	"R12-27 If the extension string cl_arm_import_memory_protected is exposed then using " \
	"CL_IMPORT_TYPE_PROTECTED_ARM in the list of <properties> is allowed."

static const property protected_dma_buf[] = { CL_IMPORT_TYPE_ARM, CL_IMPORT_TYPE_DMA_BUF_ARM,
					      CL_IMPORT_TYPE_PROTECTED_ARM, CL_TRUE, 0 };

static void need_protected(void)
{
	if (!spec.has_protected)
		test_skip("device does not report cl_arm_import_memory_protected");
}

static void need_unprotected(void)
{
	if (spec.has_protected)
		test_skip("device reports cl_arm_import_memory_protected");
}

/* Without the string, CL_TRUE is an invalid property at every place of the list. */
static const struct protected_list {
	const char *name;
	property list[7];
} protected_lists[] = {
	{ "alone", { CL_IMPORT_TYPE_PROTECTED_ARM, CL_TRUE, 0 } },
	{ "behind_the_type",
	  { CL_IMPORT_TYPE_ARM, CL_IMPORT_TYPE_HOST_ARM, CL_IMPORT_TYPE_PROTECTED_ARM, CL_TRUE,
	    0 } },
	{ "before_the_type",
	  { CL_IMPORT_TYPE_PROTECTED_ARM, CL_TRUE, CL_IMPORT_TYPE_ARM, CL_IMPORT_TYPE_HOST_ARM,
	    0 } },
};

TEST_EACH(protected_needs_its_string, struct protected_list, protected_lists, R12_27)
{
	need_unprotected();
	EXPECT_EXACT(spec_import_error(CL_MEM_READ_WRITE, row->list, spec_map_pages(1), spec.page),
		     CL_INVALID_PROPERTY);
}

TEST(protected_dma_buf_needs_the_string, R12_27)
{
	struct dma_buf *buf;

	need_unprotected();
	buf = dma_buf_get(spec.page);
	EXPECT_EXACT(
		spec_import_error(CL_MEM_HOST_NO_ACCESS, protected_dma_buf, &buf->fd, spec.page),
		CL_INVALID_PROPERTY);
}

/* The string allows the property.  A driver without the string may take the default all the same. */
TEST(unprotected_without_the_string, R12_27)
{
	const property list[] = { CL_IMPORT_TYPE_PROTECTED_ARM, CL_FALSE, 0 };
	cl_int error;

	need_unprotected();
	need_host();
	error = import_error(list, spec_map_pages(1));
	EXPECT_EXACT(error, CL_SUCCESS);
	EXPECT(error == CL_SUCCESS || error == CL_INVALID_PROPERTY);
}

static void expect_unprotected(void)
{
	const property list[] = { CL_IMPORT_TYPE_PROTECTED_ARM, CL_FALSE, 0 };
	unsigned char *memory = spec_map_pages(1);

	need_protected();
	need_host();
	expect_shared(spec_import(CL_MEM_READ_WRITE, list, memory, spec.page), memory, spec.page);
}

TEST(protected_is_allowed_with_its_string, R12_27)
{
	expect_unprotected();
}

TEST(unprotected_dma_buf_is_allowed_with_the_string, R12_27)
{
	const property list[] = { CL_IMPORT_TYPE_ARM, CL_IMPORT_TYPE_DMA_BUF_ARM,
				  CL_IMPORT_TYPE_PROTECTED_ARM, CL_FALSE, 0 };
	struct dma_buf *buf;

	need_protected();
	buf = dma_buf_get(spec.page);
	spec_import(CL_MEM_READ_WRITE, list, &buf->fd, spec.page);
}

TEST(protected_is_a_property, "R12-02 Valid <properties> are: CL_IMPORT_TYPE_PROTECTED_ARM")
{
	expect_unprotected();
}

TEST(unprotected_is_the_default,
     "R12-07 Valid values for CL_IMPORT_TYPE_PROTECTED_ARM are: "
     "CL_FALSE - the memory is imported with no special behaviour, this is the default.")
{
	expect_unprotected();
}

static cl_int refused_protected(cl_mem_flags host_flag)
{
	struct dma_buf *buf;

	need_protected();
	buf = dma_buf_get(spec.page);
	return spec_import_error(CL_MEM_READ_WRITE | host_flag, protected_dma_buf, &buf->fd,
				 spec.page);
}

TEST(protected_with_host_write,
     "R12-09 When CL_IMPORT_TYPE_PROTECTED_ARM is set to CL_TRUE, the "
     "following restrictions apply: CL_MEM_HOST_NO_ACCESS is the only accepted host access flag, "
     "all others are rejected.")
{
	refused_protected(CL_MEM_HOST_WRITE_ONLY);
}

TEST(protected_with_host_read,
     "R12-21 CL_INVALID_OPERATION if a host memory flag other than "
     "CL_MEM_HOST_NO_ACCESS is used when CL_IMPORT_TYPE_PROTECTED_ARM is set to CL_TRUE.")
{
	EXPECT_EQ(refused_protected(CL_MEM_HOST_READ_ONLY), CL_INVALID_OPERATION);
}

TEST(protected_host_memory,
     "R12-11 When CL_IMPORT_TYPE_PROTECTED_ARM is set to CL_TRUE, the "
     "following restrictions apply: CL_IMPORT_TYPE_DMA_BUF_ARM is the only valid value for "
     "CL_IMPORT_TYPE_ARM.")
{
	const property list[] = { CL_IMPORT_TYPE_ARM, CL_IMPORT_TYPE_HOST_ARM,
				  CL_IMPORT_TYPE_PROTECTED_ARM, CL_TRUE, 0 };

	need_protected();
	EXPECT_EQ(spec_import_error(CL_MEM_HOST_NO_ACCESS, list, spec_map_pages(1), spec.page),
		  CL_INVALID_PROPERTY);
}
