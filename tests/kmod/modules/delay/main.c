// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * For tests: delays every call of a function of the kernel or of a module.  A race of a few
 * instructions then happens every time.
 */
#include <linux/delay.h>
#include <linux/kprobes.h>
#include <linux/module.h>

static char *symbol = "interval_tree_remove";
module_param(symbol, charp, 0400);
MODULE_PARM_DESC(symbol, "function that is delayed");

static unsigned int delay_us = 2000;
module_param(delay_us, uint, 0600);
MODULE_PARM_DESC(delay_us, "of each call");

/*
 * Busy waiting: preemption is off, and the caller may hold any lock, so that of the clock, which
 * udelay() does not take.
 */
static int gdmabuf_delay_call(struct kprobe *kprobe, struct pt_regs *regs)
{
	udelay(delay_us);
	return 0;
}

static struct kprobe gdmabuf_delay_kprobe = { .pre_handler = gdmabuf_delay_call };

static int __init gdmabuf_delay_init(void)
{
	gdmabuf_delay_kprobe.symbol_name = symbol;
	return register_kprobe(&gdmabuf_delay_kprobe);
}

static void __exit gdmabuf_delay_exit(void)
{
	unregister_kprobe(&gdmabuf_delay_kprobe);
}

module_init(gdmabuf_delay_init);
module_exit(gdmabuf_delay_exit);
MODULE_DESCRIPTION("Delays calls of a function, for tests");
MODULE_LICENSE("Dual MIT/GPL");
