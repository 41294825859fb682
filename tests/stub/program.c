/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Programs.  The kernels' names and arguments come from the source, and the kernels' code from
 * builtin.c.
 */
#include "internal.h"

#include <ctype.h>
#include <stdio.h>

static const char *skip_space(const char *s)
{
	while (isspace((unsigned char)*s))
		s++;
	return s;
}

static bool word_at(const char *source, const char *at, const char *word)
{
	size_t length = strlen(word);

	return !strncmp(at, word, length) && !isalnum((unsigned char)at[length]) &&
	       at[length] != '_' && (at == source || !isalnum((unsigned char)at[-1]));
}

static bool source_contains(const char *text, size_t length, const char *word)
{
	return memmem(text, length, word, strlen(word)) != NULL;
}

/* The size of the scalar or vector type at the beginning of an argument. */
static size_t value_size(const char *text)
{
	static const struct {
		const char *name;
		size_t size;
	} types[] = { { "char", 1 },  { "short", 2 }, { "half", 2 },   { "int", 4 },
		      { "float", 4 }, { "long", 8 },  { "double", 8 }, { "size_t", 8 } };

	text = skip_space(text);
	if (word_at(text, text, "const"))
		text = skip_space(text + 5);
	text += *text == 'u';
	for (size_t i = 0; i < sizeof(types) / sizeof(*types); i++) {
		size_t length = strlen(types[i].name);

		if (!strncmp(text, types[i].name, length)) {
			size_t n = strtoul(text + length, NULL, 10);

			return types[i].size * (n == 3 ? 4 : n ? n : 1);
		}
	}
	return 4;
}

static void argument_parse(struct signature *s, const char *text, size_t length)
{
	unsigned n = s->num_args++;

	s->arg[n].size = sizeof(void *);
	if (source_contains(text, length, "sampler_t"))
		s->arg[n].kind = ARG_SAMPLER;
	else if (source_contains(text, length, "image"))
		s->arg[n].kind = ARG_MEM;
	else if (source_contains(text, length, "*"))
		s->arg[n].kind = source_contains(text, length, "local") ? ARG_LOCAL : ARG_MEM;
	else
		s->arg[n].size = value_size(text);
}

/* Parses "NAME(argument, argument)"; returns false for other text. */
static bool signature_parse(struct signature *s, const char *at)
{
	size_t length = strcspn(at, " \t\n(");
	const char *open = skip_space(at + length), *close = strchr(open, ')');

	memset(s, 0, sizeof(*s));
	if (!length || length >= sizeof(s->name) || *open != '(' || !close)
		return false;
	memcpy(s->name, at, length);
	for (at = skip_space(open + 1); at < close; at += length + 1) {
		length = strcspn(at, ",)");
		if (s->num_args == 16)
			return false;
		if (!(length == 4 && !strncmp(at, "void", 4)))
			argument_parse(s, at, length);
	}
	return true;
}

unsigned source_parse(const char *source, struct signature *out, unsigned room)
{
	const char *at = source, *type;
	unsigned n = 0;

	while (n < room && (at = strstr(at, "kernel"))) {
		type = word_at(source, at, "kernel") ? strstr(at, "void") : NULL;
		if (type && signature_parse(&out[n], skip_space(type + 4)))
			n++;
		at += 6;
	}
	return n;
}

static char *source_join(cl_uint count, const char **strings, const size_t *lengths)
{
	size_t total = 0, n;
	char *all = NULL, *grown;

	for (cl_uint i = 0; i < count; i++) {
		n = lengths && lengths[i] ? lengths[i] : strlen(strings[i]);
		grown = realloc(all, total + n + 1);
		if (!grown)
			abort();
		all = grown;
		memcpy(all + total, strings[i], n);
		total += n;
		all[total] = 0;
	}
	return all;
}

cl_program CL_API_CALL stub_clCreateProgramWithSource(cl_context handle, cl_uint count,
						      const char **strings, const size_t *lengths,
						      cl_int *errcode_ret)
{
	struct context *context = object_get(handle, STUB_CONTEXT);
	cl_int err = CALL(clCreateProgramWithSource, U(handle), U(count), U(strings), U(lengths));
	struct program *program;

	if (!err && !context)
		err = CL_INVALID_CONTEXT;
	if (!err && (!count || !strings))
		err = CL_INVALID_VALUE;
	if (err)
		return creation_failed(errcode_ret, err);
	program = object_create(STUB_PROGRAM);
	object_retain(context);
	program->context = context;
	program->source = source_join(count, strings, lengths);
	if (errcode_ret)
		*errcode_ret = CL_SUCCESS;
	return (cl_program)program;
}

void program_put(struct program *program)
{
	if (!object_release(program))
		return;
	stub_context_put(program->context);
	free(program->source);
	free(program->kernel);
	object_destroy(program);
}

cl_int CL_API_CALL stub_clRetainProgram(cl_program handle)
{
	CALL(clRetainProgram, U(handle));
	if (!object_get(handle, STUB_PROGRAM))
		return CL_INVALID_PROGRAM;
	object_retain(handle);
	return CL_SUCCESS;
}

cl_int CL_API_CALL stub_clReleaseProgram(cl_program handle)
{
	CALL(clReleaseProgram, U(handle));
	if (!object_get(handle, STUB_PROGRAM))
		return CL_INVALID_PROGRAM;
	program_put((struct program *)handle);
	return CL_SUCCESS;
}

/* If builtin.c lacks a kernel, the build fails, so that no test silently runs an empty kernel. */
static cl_int program_build(struct program *program)
{
	struct signature found[32];

	program->num_kernels = source_parse(program->source, found, 32);
	for (unsigned i = 0; i < program->num_kernels; i++) {
		if (builtin_find(found[i].name))
			continue;
		fprintf(stderr, "stub: builtin.c has no kernel %s\n", found[i].name);
		return CL_BUILD_PROGRAM_FAILURE;
	}
	free(program->kernel);
	program->kernel = calloc(program->num_kernels + 1, sizeof(*found));
	memcpy(program->kernel, found, program->num_kernels * sizeof(*found));
	program->built = true;
	return CL_SUCCESS;
}

/* Uses stack as a compiler does. */
static void use_stack(size_t left)
{
	volatile char frame[4096];

	frame[0] = frame[sizeof(frame) - 1] = 1;
	if (left > sizeof(frame))
		use_stack(left - sizeof(frame));
	frame[0] = 0;
}

cl_int CL_API_CALL stub_clBuildProgram(cl_program handle, cl_uint num, const cl_device_id *devices,
				       const char *options,
				       void(CL_CALLBACK *notify)(cl_program, void *), void *data)
{
	struct program *program = object_get(handle, STUB_PROGRAM);
	cl_int err =
		CALL(clBuildProgram, U(handle), U(num), U(devices), U(options), U(notify), U(data));

	use_stack((size_t)stub_get(STUB_STACK));
	if (err)
		return err;
	if (!program)
		return CL_INVALID_PROGRAM;
	if (!num != !devices)
		return CL_INVALID_VALUE;
	err = program_build(program);
	if (notify)
		notify(handle, data);
	return err;
}

cl_int CL_API_CALL stub_clGetProgramInfo(cl_program handle, cl_program_info name, size_t room,
					 void *out, size_t *size_ret)
{
	struct program *program = object_get(handle, STUB_PROGRAM);
	cl_int err = CALL(clGetProgramInfo, U(handle), U(name), U(room), U(out), U(size_ret));
	size_t count;
	cl_uint refs;

	if (err)
		return err;
	if (!program)
		return CL_INVALID_PROGRAM;
	refs = (cl_uint)program->base.refs;
	count = program->num_kernels;
	switch (name) {
	case CL_PROGRAM_REFERENCE_COUNT:
		return info_put(&refs, sizeof(refs), room, out, size_ret);
	case CL_PROGRAM_CONTEXT:
		return info_put(&program->context, sizeof(void *), room, out, size_ret);
	case CL_PROGRAM_NUM_DEVICES:
		return info_put(&program->context->num_devices, sizeof(cl_uint), room, out,
				size_ret);
	case CL_PROGRAM_DEVICES:
		return info_put(program->context->device,
				program->context->num_devices * sizeof(void *), room, out,
				size_ret);
	case CL_PROGRAM_SOURCE:
		return info_put(program->source, strlen(program->source) + 1, room, out, size_ret);
	case CL_PROGRAM_NUM_KERNELS:
		return info_put(&count, sizeof(count), room, out, size_ret);
	}
	return CL_INVALID_VALUE;
}

cl_int CL_API_CALL stub_clGetProgramBuildInfo(cl_program handle, cl_device_id device,
					      cl_program_build_info name, size_t room, void *out,
					      size_t *size_ret)
{
	struct program *program = object_get(handle, STUB_PROGRAM);
	cl_int err = CALL(clGetProgramBuildInfo, U(handle), U(device), U(name), U(room), U(out));
	cl_build_status status;

	if (err)
		return err;
	if (!program)
		return CL_INVALID_PROGRAM;
	status = program->built ? CL_BUILD_SUCCESS : CL_BUILD_ERROR;
	if (name == CL_PROGRAM_BUILD_STATUS)
		return info_put(&status, sizeof(status), room, out, size_ret);
	if (name == CL_PROGRAM_BUILD_LOG || name == CL_PROGRAM_BUILD_OPTIONS)
		return info_put("", 1, room, out, size_ret);
	return CL_INVALID_VALUE;
}

cl_int CL_API_CALL stub_clUnloadCompiler(void)
{
	return CL_SUCCESS;
}

cl_int CL_API_CALL stub_clUnloadPlatformCompiler(cl_platform_id handle)
{
	return object_get(handle, STUB_PLATFORM) ? CL_SUCCESS : CL_INVALID_PLATFORM;
}
