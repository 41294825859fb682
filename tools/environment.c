/* SPDX-License-Identifier: Apache-2.0 */
#include "environment.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "terminal.h"
#include "util/setting_values.h"

#define INDENT 4

const struct environment_variable environment_variables[] = {
	{ "CLIMPORT_VERSION", "layer", NULL, "1.0.0",
	  "the extension's version. 1.0.0: the sixteen host accesses fail on imports; 1.1.0: host "
	  "accesses work" },
	{ "CLIMPORT_DISABLE", "layer", NULL, "0",
	  "1: the layer is loaded, and intercepts nothing" },
	{ "CLIMPORT_LOG", "layer, library", NULL, "off",
	  "error: a sentence for each fault, on standard error; debug: decisions as well; off, "
	  "none or 0: no message. Another value is taken for error" },
	{ "CLIMPORT_IMAGE2D_FROM_BUFFER", "layer", NULL, "0; 1 in ffmpeg and ffplay",
	  "1: report cl_khr_image2d_from_buffer for devices on which the extension works for "
	  "imports, though not for ordinary buffers" },
	{ "CLIMPORT_PROBE", "layer", NULL,
	  "climport-probe; off once the program has entered a seccomp filter",
	  "who tests a driver of which no result is kept: climport-probe, which is not started "
	  "after chroot(). off: nobody, so names are missing and imports fail, for services whose "
	  "seccomp filter kills for a new process. here: the caller, which may crash or hang with "
	  "the driver" },
	{ "CLIMPORT_VERIFY", "layer", NULL, "0",
	  "1: each import proves itself with data before the program gets it: kernels write to "
	  "four bytes at its beginning, middle and end, which get their old values back; nobody "
	  "else may use the memory meanwhile. For bug reports" },
	{ "CLIMPORT_LIBRARY", "Python", "a file", "libclimport.so.0",
	  "the library of the Python package" },
	{ "CLIMPORT_NUMBA_VMM", "Python", NULL, "0",
	  "1: the memory manager for Numba takes memory of climport_alloc(), which NVIDIA's OpenCL "
	  "imports in place" },
	{ "CLIMPORT_NUMBA_SYNC", "Python", NULL, "0",
	  "1: the memory manager for Numba waits for all streams before memory is used again" },
	{ "CLIMPORT_NET_PROVIDER", "net plugin", NULL, "verbs, else tcp",
	  "libfabric's provider; none: no device of the plugin's own" },
	{ "CLIMPORT_NET_IFNAME", "net plugin", "a list of names, in NCCL's syntax",
	  "NCCL_SOCKET_IFNAME, else all but lo and docker", "the network interfaces of tcp" },
	{ "CLIMPORT_NET_LIBFABRIC", "net plugin", "a file", "libfabric.so.1", "the library" },
	{ "CLIMPORT_NET_INNER", "net plugin", "a file", "none",
	  "another plugin, which moves the messages (docs/scale-out.md)" },
	{ "CLIMPORT_NET_OWN_EXPORT", "net plugin", NULL, "0",
	  "1: NCCL hands over CUDA pointers, and climport makes the dma-bufs" },
	{ "CLIMPORT_NET_RAILS", "net plugin", NULL, "tcp 4, verbs 1",
	  "endpoints of a connection for the parts of large messages" },
	{ "CLIMPORT_NET_THREADS", "net plugin", NULL, "a quarter of the processors, 1 to 8",
	  "threads of a tcp device" },
	{ "CLIMPORT_NET_SMALL", "net plugin", "bytes", "tcp 65536, verbs 8192",
	  "the largest message that goes whole, with the header" },
	{ "CLIMPORT_NET_PART", "net plugin", "bytes", "tcp 65536, verbs 1 MiB",
	  "the smallest part of a message" },
	{ "CLIMPORT_NET_SPIN", "net plugin", "microseconds", "5",
	  "how long a thread without messages under way looks for work before the thread sleeps" },
	{ "CLIMPORT_NET_PATIENCE", "net plugin", "microseconds", "20",
	  "how long a thread with messages under way looks for work before the thread sleeps" },
	{ "CLIMPORT_CONFORM_EXACT", "conform", NULL, "0",
	  "1: where the extension's text is open, only what climport does is right; also makes "
	  "calls that may crash other drivers" },
	{ "OPENCL_LAYERS", "tool, and the loader", "a list of files, with colons", "none",
	  "the loader's layers, so that no path can contain a colon; the last layer is outermost" },
	{ "OCL_ICD_VENDORS", "tool, and the loader", "a folder; ocl-icd: a file or library, too",
	  "/etc/OpenCL/vendors", "where the drivers' .icd files are" },
	{ "OPENCL_VENDOR_PATH", "tool, and ocl-icd", "a folder", "/etc/OpenCL/vendors",
	  "holds where OCL_ICD_VENDORS is not set" },
	{ "OCL_ICD_FILENAMES", "tool, and Khronos' loader", "a list of libraries, with colons",
	  "none", "drivers before those of OCL_ICD_VENDORS" },
	{ "NCCL_SOCKET_IFNAME", "net plugin", "a list of names", "none",
	  "holds where CLIMPORT_NET_IFNAME is not set" },
	{ "NEOReadDebugKeys", "layer", "1 or 0", "0",
	  "set, Intel's driver reads variables of any name, and results of self-tests hold for an "
	  "environment alone" },
	{ "XDG_CACHE_HOME", "layer, library", "a folder", "HOME with /.cache",
	  "results of self-tests are kept in climport/results below; files for self-tests are made "
	  "there" },
	{ "XDG_CONFIG_HOME", "tool", "a folder", "HOME with /.config",
	  "climport enable --user writes to environment.d below" },
	{ "HOME", "layer, library, tool", "a folder", "none",
	  "holds where XDG_CACHE_HOME or XDG_CONFIG_HOME is not set" },
	{ "NO_COLOR", "tool", "any text", "not set",
	  "set, and not empty: no colours on a terminal. Elsewhere there are none" },
	{ "LD_PRELOAD", "layer, and the dynamic linker", "a list of files", "none",
	  "a probe process has these libraries, unless a runtime of a sanitizer or of valgrind is "
	  "among them, and results of self-tests hold for them" },
	{ "LD_LIBRARY_PATH", "tool, and the dynamic linker", "a list of folders, with colons",
	  "none", "climport run adds the folder of a libOpenCL.so with clImportMemoryARM" },
	{ "TERM", "tool", "a terminal's name", "none", "not set, or dumb: no colours" },
	{ 0 },
};

void environment_check(void)
{
	const struct environment_variable *row = environment_variables;
	char sentence[SETTING_SENTENCE_SIZE];

	for (; row->name; row++) {
		const char *value = getenv(row->name);

		if (value && !setting_is_understood(row->name, value, sentence))
			terminal_line(stderr, INDENT, "climport: %s: see climport info --env",
				      sentence);
	}
}

int environment_print(void)
{
	const struct environment_variable *row = environment_variables;

	environment_check();
	for (; row->name; row++) {
		const char *value = getenv(row->name);
		struct terminal_text t;

		terminal_begin(&t, stdout, INDENT);
		terminal_add(&t, COLOUR_BOLD, "%s", row->name);
		terminal_add(&t, COLOUR_NONE, ": %s; default: %s (%s)",
			     row->type ? row->type : setting_values(row->name), row->preset,
			     row->reader);
		terminal_end(&t);
		if (value)
			terminal_line(stdout, INDENT, "%*sis set to \"%s\"", INDENT, "", value);
		terminal_line(stdout, INDENT, "%*s%s", INDENT, "", row->help);
	}
	return 0;
}
