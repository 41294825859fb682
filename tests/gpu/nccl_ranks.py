# SPDX-License-Identifier: Apache-2.0
"""A rank of tests/gpu/nccl: nccl_ranks.py check|short|bench NAME."""
import datetime
import os
import resource
import sys
import time

import torch
import torch.distributed as dist

RANK, WORLD = int(os.environ['RANK']), int(os.environ['WORLD_SIZE'])


def result(text):
    if RANK == 0:
        print('RESULT', sys.argv[2], text, flush=True)


def expect(good, what):
    if not bool(good):
        print(f'rank {RANK}: {what} is wrong', flush=True)
        sys.exit(1)


def numbers(count, rank):
    """Values that differ by rank and place, and whose sums are exact."""
    return (torch.arange(count, device='cuda', dtype=torch.float32) % 1024) + 4096 * rank


def total(count):
    return sum(numbers(count, r) for r in range(WORLD))


def check_size(count):
    x = numbers(count, RANK)
    dist.all_reduce(x)
    expect((x == total(count)).all(), f'all_reduce of {count}')

    parts = [torch.empty(count, device='cuda') for _ in range(WORLD)]
    dist.all_gather(parts, numbers(count, RANK))
    for r, part in enumerate(parts):
        expect((part == numbers(count, r)).all(), f'all_gather of {count}')

    whole = torch.cat([numbers(count, RANK) + i for i in range(WORLD)])
    part = torch.empty(count, device='cuda')
    dist.reduce_scatter_tensor(part, whole)
    expect((part == total(count) + RANK * WORLD).all(), f'reduce_scatter of {count}')

    got = torch.empty(count, device='cuda')
    peer = (RANK + 1) % WORLD
    ops = [dist.P2POp(dist.isend, numbers(count, RANK), peer),
           dist.P2POp(dist.irecv, got, peer)]
    for request in dist.batch_isend_irecv(ops):
        request.wait()
    torch.cuda.synchronize()
    expect((got == numbers(count, peer)).all(), f'send and receive of {count}')


def check_user_buffers():
    backend = dist.distributed_c10d._get_default_group()._get_backend(torch.device('cuda'))
    try:
        pool = torch.cuda.MemPool(backend.mem_allocator)
    except Exception as error:  # an older torch
        result(f'user buffers: not run: {error}')
        return
    with torch.cuda.use_mem_pool(pool):
        x = numbers(1 << 20, RANK)
    backend.register_mem_pool(pool)
    dist.all_reduce(x)
    torch.cuda.synchronize()
    expect((x == total(1 << 20)).all(), 'all_reduce of a registered buffer')
    backend.deregister_mem_pool(pool)
    result('user buffers: registered, all_reduce right')


def check():
    for count in (1, 127, 1024, 65537, 1 << 20, (4 << 20) + 3, 16 << 20):
        check_size(count)
        dist.barrier()
    result('all_reduce, all_gather, reduce_scatter, send and receive: right')
    check_user_buffers()


def short():
    for count in (1, 1024, 1 << 18, (4 << 20) + 3):
        check_size(count)
    result('collectives: right')


def cpu():
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def measure(size, rounds, group):
    x = torch.zeros(size // 4, device='cuda')
    for _ in range(max(3, rounds // 10)):
        dist.all_reduce(x, group=group)
    torch.cuda.synchronize()
    dist.barrier(group=group)
    torch.cuda.synchronize()
    before, start = cpu(), time.perf_counter()
    for _ in range(rounds):
        dist.all_reduce(x, group=group)
    torch.cuda.synchronize()
    taken, used = (time.perf_counter() - start) / rounds, cpu() - before
    used = torch.tensor([used], device='cuda')
    dist.all_reduce(used, group=group)
    return taken, used.item() / rounds


SIZES = ((4 << 10, 400), (64 << 10, 300), (256 << 10, 200), (1 << 20, 150), (4 << 20, 80),
         (16 << 20, 30), (256 << 20, 6))


def bench_group(label):
    """A line for each size: label, KiB, microseconds, GB/s, CPU seconds a GB, processors.

    Of the CPU seconds, both ranks' main threads take their share: they wait for the GPU.
    """
    group = dist.new_group(backend='nccl')
    for size, rounds in SIZES:
        taken, used = measure(size, rounds, group)
        result(f'{label} {size >> 10} {taken * 1e6:.1f} {size / taken * 1e-9:.2f} '
               f'{used / (size * 1e-9):.2f} {used / taken:.1f}')
    dist.destroy_process_group(group)


def bench():
    """SETTINGS: groups of VARIABLE=VALUE,..., each for a communicator of its own."""
    for label in os.environ.get('SETTINGS', 'default').split():
        changes = dict(part.split('=') for part in label.split(',') if '=' in part)
        os.environ.update(changes)
        bench_group(label)
        for name in changes:
            del os.environ[name]


def main():
    mode = {'check': check, 'short': short, 'bench': bench}[sys.argv[1]]
    torch.cuda.set_device(RANK % torch.cuda.device_count())
    store = dist.FileStore(os.environ['STORE'], WORLD)
    wait = datetime.timedelta(seconds=80)
    if mode == bench:
        dist.init_process_group('gloo', store=store, rank=RANK, world_size=WORLD, timeout=wait)
    else:
        dist.init_process_group('nccl', store=store, rank=RANK, world_size=WORLD, timeout=wait,
                                device_id=torch.device('cuda', torch.cuda.current_device()))
    mode()
    dist.barrier()
    torch.cuda.synchronize()
    dist.destroy_process_group()


main()
