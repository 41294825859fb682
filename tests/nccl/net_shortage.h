/* SPDX-License-Identifier: Apache-2.0 */
/* Symbols of the plugin that net_shortage.c is a part of. */
#ifndef TESTS_NCCL_NET_SHORTAGE_H
#define TESTS_NCCL_NET_SHORTAGE_H

/* The @nth allocation of the plugin's own from now on fails; 0: none. */
void net_shortage_at(int nth);

/* Likewise, but the allocation calls @instead and does not fail. */
void net_shortage_call_at(int nth, void (*instead)(void));

/* Above 0: the allocation has not come. */
int net_shortage_left(void);

#endif /* TESTS_NCCL_NET_SHORTAGE_H */
