/* SPDX-License-Identifier: Apache-2.0 */
/* A fake machine in a folder, and climport diag of the folder. */
#ifndef TESTS_TOOLS_DIAG_FIXTURE_H
#define TESTS_TOOLS_DIAG_FIXTURE_H

#include "harness.h"
#include "diag.h"

#define TREE "diag-tree"
#define BRIDGES "sys/devices/pci0000:00/0000:00:01.0/0000:01:00.0"
#define GPU BRIDGES "/0000:02:00.0/0000:03:00.0"
#define NIC BRIDGES "/0000:02:01.0/0000:04:00.0"
#define NO_ACS (-1)

extern char output[1 << 16];
extern unsigned int gpu_page_size;
extern int caps_error;

void tree_put_bytes(const char *name, const void *bytes, size_t size);

void tree_put(const char *name, const char *text);

void tree_put_in(const char *dir, const char *name, const char *text);

void tree_remove_file(const char *name);

/* A configuration space as root reads: error reporting, then ACS with the bits @control. */
void tree_put_config(const char *dir, int control);

void tree_put_driver(const char *dir, const char *driver);

void tree_put_bar(const char *dir, const char *line);

void tree_put_device(const char *dir, const char *vendor, const char *class, const char *driver);

#define BAR_256M "0x000000e000000000 0x000000e00fffffff 0x000000000014220c"
#define BAR_32G "0x000000e000000000 0x000000e7ffffffff 0x000000000014220c"

/* A machine on which nothing stops the peer. */
void tree_put_machine(void);

int diag_of(const char *peer);

int diag_says(const char *sentence);

void expect_says(int status, const char *sentence);

#endif
