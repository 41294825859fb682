/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The functions of import/ called by the layer are in libclimport.so: a process has one
 * registration cache.  In the library the functions have names apart from every program's own
 * names. The names are private: the layer and the library are installed together, and a layer does
 * not load with the library of another build (the symbols' version, CMakeLists.txt).
 */
#ifndef IMPORT_SHARED_H
#define IMPORT_SHARED_H

#define import_get climport_private_import_get
#define import_describe_kept climport_private_import_describe_kept
#define import_of_driver climport_private_import_of_driver
#define import_hold climport_private_import_hold
#define import_put climport_private_import_put
#define import_released climport_private_import_released
#define import_opaque climport_private_import_opaque
#define import_opaque_open climport_private_import_opaque_open
#define import_opaque_open_part climport_private_import_opaque_open_part
#define import_exporter_get climport_private_import_exporter_get
#define import_on_forget climport_private_import_on_forget
#define import_on_shortage climport_private_import_on_shortage
#define import_share_most climport_private_import_share_most
#define import_sample climport_private_import_sample
#define import_sample_on_device climport_private_import_sample_on_device
#define import_sample_kind climport_private_import_sample_kind
#define import_pages climport_private_import_pages
#define import_sample_pages climport_private_import_sample_pages
#define import_sample_dmabuf climport_private_import_sample_dmabuf
#define import_memory_available climport_private_import_memory_available
#define import_needs_bracket climport_private_import_needs_bracket
#define import_check_access climport_private_import_check_access
#define import_sync climport_private_import_sync
#define import_begin_async climport_private_import_begin_async

#endif
