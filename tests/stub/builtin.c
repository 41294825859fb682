/* SPDX-License-Identifier: Apache-2.0 */
/* The kernels that the stub can run: the kernels in the sources of the layer and of the tests. */
#include "internal.h"

static cl_uint arg_read_uint(const struct arg *arg)
{
	cl_uint value;

	memcpy(&value, arg->value, sizeof(value));
	return value;
}

/* climport_selftest(uchar *a, uchar *b, ulong4 at) */
static void climport_selftest(const struct arg *arg, const size_t *id, const size_t *global)
{
	volatile unsigned char *a = arg[0].data, *b = arg[1].data;
	cl_ulong at[4];

	(void)id;
	(void)global;
	memcpy(at, arg[2].value, sizeof(at));
	a[at[1]] = b[at[0]];
	a[at[2]] = b[at[1]];
}

/* climport_selftest_address(ulong *out, uchar *a) */
static void climport_selftest_address(const struct arg *arg, const size_t *id, const size_t *global)
{
	(void)id;
	(void)global;
	memcpy(arg[0].data, &arg[1].data, sizeof(arg[1].data));
}

/* increment(uchar *a): a[i]++ */
static void builtin_increment(const struct arg *arg, const size_t *id, const size_t *global)
{
	(void)global;
	arg[0].data[id[0]]++;
}

/* vector_add(uint *out, const uint *a, const uint *b) */
static void builtin_vector_add(const struct arg *arg, const size_t *id, const size_t *global)
{
	cl_uint a, b;

	(void)global;
	memcpy(&a, arg[1].data + 4 * id[0], sizeof(a));
	memcpy(&b, arg[2].data + 4 * id[0], sizeof(b));
	a += b;
	memcpy(arg[0].data + 4 * id[0], &a, sizeof(a));
}

/* add(uchar *p, uint size, uint stride, uint value) */
static void builtin_add(const struct arg *arg, const size_t *id, const size_t *global)
{
	(void)id;
	(void)global;
	for (size_t i = 0; i < arg_read_uint(&arg[1]); i += arg_read_uint(&arg[2]))
		arg[0].data[i] = (unsigned char)(arg[0].data[i] + arg_read_uint(&arg[3]));
}

/* copy(const uchar *from, uchar *to, uint size) */
static void builtin_copy(const struct arg *arg, const size_t *id, const size_t *global)
{
	(void)id;
	(void)global;
	memmove(arg[1].data, arg[0].data, arg_read_uint(&arg[2]));
}

/* copy_around(const uchar *from, uint below, uchar *to, uint size) */
static void builtin_copy_around(const struct arg *arg, const size_t *id, const size_t *global)
{
	(void)id;
	(void)global;
	memmove(arg[2].data, arg[0].data - arg_read_uint(&arg[1]), arg_read_uint(&arg[3]));
}

/* watch(volatile uchar *flag, uint tries) */
static void builtin_watch(const struct arg *arg, const size_t *id, const size_t *global)
{
	volatile unsigned char *flag = arg[0].data;
	cl_uint i = 0, tries = arg_read_uint(&arg[1]);

	(void)id;
	(void)global;
	while (!flag[0] && i < tries)
		i++;
	flag[1] = i < tries ? 1 : 2;
}

static unsigned char *arg_find_pixel(const struct arg *arg, size_t x, size_t y)
{
	return arg->data + y * arg->mem->stride + x * arg->mem->element;
}

/* image_to_buffer(image2d_t from, uchar *to, uint w, uint h): of four channels or of CL_R */
static void builtin_image_to_buffer(const struct arg *arg, const size_t *id, const size_t *global)
{
	const size_t width = arg_read_uint(&arg[2]), height = arg_read_uint(&arg[3]);
	const size_t element = arg[0].mem->element < 4 ? arg[0].mem->element : 4;

	(void)id;
	(void)global;
	for (size_t y = 0; y < height; y++)
		for (size_t x = 0; x < width; x++)
			memcpy(arg[1].data + (y * width + x) * 4, arg_find_pixel(&arg[0], x, y),
			       element);
}

/* buffer_to_image(const uchar *from, image2d_t to, uint w, uint h) */
static void builtin_buffer_to_image(const struct arg *arg, const size_t *id, const size_t *global)
{
	(void)id;
	(void)global;
	for (size_t y = 0; y < arg_read_uint(&arg[3]); y++)
		memcpy(arg_find_pixel(&arg[1], 0, y), arg[0].data + y * arg_read_uint(&arg[2]) * 4,
		       arg_read_uint(&arg[2]) * 4);
}

/* image1d_to_buffer(image1d_buffer_t from, uchar *to, uint w) */
static void builtin_image1d_to_buffer(const struct arg *arg, const size_t *id, const size_t *global)
{
	(void)id;
	(void)global;
	memcpy(arg[1].data, arg[0].data, arg_read_uint(&arg[2]) * 4);
}

/* buffer_to_image1d(const uchar *from, image1d_buffer_t to, uint w) */
static void builtin_buffer_to_image1d(const struct arg *arg, const size_t *id, const size_t *global)
{
	(void)id;
	(void)global;
	memcpy(arg[1].data, arg[0].data, arg_read_uint(&arg[2]) * 4);
}

/* climport_selftest_image(a, b, ulong4 at) */
static void climport_selftest_image(const struct arg *arg, const size_t *id, const size_t *global)
{
	cl_ulong at[4];

	(void)id;
	(void)global;
	memcpy(at, arg[2].value, sizeof(at));
	for (int i = 0; i < 2; i++)
		memcpy(arg_find_pixel(&arg[0], at[i + 1] % at[3], at[i + 1] / at[3]),
		       arg_find_pixel(&arg[1], at[i] % at[3], at[i] / at[3]), arg[0].mem->element);
}

static const struct {
	const char *name;
	kernel_fn *run;
} builtins[] = {
	{ "climport_selftest", climport_selftest },
	{ "climport_selftest_address", climport_selftest_address },
	{ "climport_selftest_image", climport_selftest_image },
	{ "climport_selftest_image_1d", climport_selftest_image },
	{ "increment", builtin_increment },
	{ "vector_add", builtin_vector_add },
	{ "add", builtin_add },
	{ "copy", builtin_copy },
	{ "copy_around", builtin_copy_around },
	{ "watch", builtin_watch },
	{ "image_to_buffer", builtin_image_to_buffer },
	{ "buffer_to_image", builtin_buffer_to_image },
	{ "image1d_to_buffer", builtin_image1d_to_buffer },
	{ "buffer_to_image1d", builtin_buffer_to_image1d },
};

kernel_fn *builtin_find(const char *name)
{
	for (size_t i = 0; i < sizeof(builtins) / sizeof(*builtins); i++)
		if (!strcmp(builtins[i].name, name))
			return builtins[i].run;
	return NULL;
}
