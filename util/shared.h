/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The functions of util/ called by the layer are in libclimport.so: see import/shared.h.  A process
 * so has one list of locks for fork(), and one log.
 */
#ifndef UTIL_SHARED_H
#define UTIL_SHARED_H

#define lock_thread climport_private_lock_thread
#define lock_gate climport_private_lock_gate
#define lock_acquire_in_fork climport_private_lock_acquire_in_fork
#define lock_wait climport_private_lock_wait
#define fork_generation climport_private_fork_generation
#define idle_watch climport_private_idle_watch
#define idle_prepare climport_private_idle_prepare
#define idle_call climport_private_idle_call
#define idle_is_running climport_private_idle_is_running
#define lock_register climport_private_lock_register
#define lock_unregister climport_private_lock_unregister
#define descriptor_duplicate climport_private_descriptor_duplicate
#define descriptor_close climport_private_descriptor_close
#define descriptor_identify climport_private_descriptor_identify
#define descriptor_own climport_private_descriptor_own
#define descriptor_is_own climport_private_descriptor_is_own
#define descriptor_share climport_private_descriptor_share
#define descriptor_own_close climport_private_descriptor_own_close
#define thread_create climport_private_thread_create
#define restricted_is_entered climport_private_restricted_is_entered
#define restricted_filters climport_private_restricted_filters
#define shortage_add_giver climport_private_shortage_add_giver
#define shortage_is climport_private_shortage_is
#define shortage_retry climport_private_shortage_retry
#define setting_get climport_private_setting_get
#define setting_is climport_private_setting_is
#define setting_report climport_private_setting_report
#define log_errno climport_private_log_errno
#define log_error climport_private_log_error
#define log_debug climport_private_log_debug
#define log_hold climport_private_log_hold
#define log_resume climport_private_log_resume
#define log_clear climport_private_log_clear
#define log_last climport_private_log_last

#endif
