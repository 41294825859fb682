/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The functions of NVML that climport diag calls, for a single GPU, 0000:03:00.0.  FAKE_NVML_INIT
 * and FAKE_NVML_BAR are the results of nvmlInit and of the question for the BAR.  With
 * FAKE_NVML_DIES, nvmlInit ends the process.
 */
#include <signal.h>
#include <stdlib.h>
#include <string.h>

struct bar {
	unsigned long long total, free, used;
};

enum { SUCCESS, UNINITIALIZED, NOT_SUPPORTED = 3, NOT_FOUND = 6, DRIVER_NOT_LOADED = 9 };

int nvmlInit_v2(void);
int nvmlShutdown(void);
const char *nvmlErrorString(int result);
int nvmlDeviceGetHandleByPciBusId_v2(const char *pci_bus_id, void **device);
int nvmlDeviceGetBAR1MemoryInfo(void *device, struct bar *bar);

static int ready;
static char gpu;

static int nvml_read_result(const char *name)
{
	const char *text = getenv(name);

	return text ? atoi(text) : SUCCESS;
}

int nvmlInit_v2(void)
{
	int result = nvml_read_result("FAKE_NVML_INIT");

	if (getenv("FAKE_NVML_DIES"))
		raise(SIGKILL);
	ready += !result;
	return result;
}

int nvmlShutdown(void)
{
	return ready-- ? SUCCESS : UNINITIALIZED;
}

const char *nvmlErrorString(int result)
{
	switch (result) {
	case NOT_SUPPORTED:
		return "Not Supported";
	case NOT_FOUND:
		return "Not Found";
	case DRIVER_NOT_LOADED:
		return "Driver Not Loaded";
	default:
		return "Unknown Error";
	}
}

int nvmlDeviceGetHandleByPciBusId_v2(const char *pci_bus_id, void **device)
{
	if (!ready)
		return UNINITIALIZED;
	if (strcmp(pci_bus_id, "0000:03:00.0"))
		return NOT_FOUND;
	*device = &gpu;
	return SUCCESS;
}

int nvmlDeviceGetBAR1MemoryInfo(void *device, struct bar *bar)
{
	if (!ready || device != &gpu)
		return UNINITIALIZED;
	*bar = (struct bar){ .total = 32ull << 30, .free = 32756ull << 20, .used = 12ull << 20 };
	return nvml_read_result("FAKE_NVML_BAR");
}

/* The program must call nvmlShutdown() before dlclose(). */
__attribute__((destructor)) static void nvml_check_shutdown(void)
{
	if (ready)
		abort();
}
