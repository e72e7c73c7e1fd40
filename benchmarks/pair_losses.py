"""Value and gradient of pair losses in PyTorch, 1,000 to 10 million scores: `torch_loss` against losses that visit all pairs.

    python benchmarks/pair_losses.py [--sizes 1000,10000] [--share 0.1] [--gigabytes 6] [--out FILE.jsonl]

It needs PyTorch, and LibAUC for its losses: without it they are left out. All scores are float32 on the CPU.

- scoreline: `torch_loss("roc_auc")`, squared hinge over all pairs, float64 inside.
- matrix: the formula, mean(relu(1 - z_i + z_j)^2) / 2, as a matrix of all pairs in PyTorch.
- MarginRankingLoss: PyTorch's hinge loss on the same matrix of pairs.
- LibAUC pairwise: LibAUC's PairwiseAUCLoss("squared_hinge"), also a matrix.
- LibAUC AUCM: LibAUC's AUCMLoss. It replaces the squared loss over pairs by sums over rows with three variables that are
  trained, too, so it needs no matrix. It is another function: pairs in the right order are punished as well.

Set OMP_NUM_THREADS=1 on a busy machine: threads that wait for each other would count as time of the processor. Each case
runs in a fresh process, whose memory is limited to `--gigabytes`. `seconds` is the shortest of three calls after
one that is not counted, `processor` the same of the time of all threads, and `megabytes` the growth of the peak memory.
Set OMP_NUM_THREADS=1 on a busy machine, because threads that wait for each other count as time of the processor.
"""

import argparse
import json
import subprocess
import sys
from pathlib import Path

LOSSES = ("scoreline", "matrix", "MarginRankingLoss", "LibAUC pairwise", "LibAUC AUCM")
SIZES = (1_000, 10_000, 100_000, 1_000_000, 10_000_000)
CALLS = 4
SLOW = 60.0  # seconds of a call after which larger sizes are left out


def loss_of(name):
    import torch

    def differences(scores, labels):
        return scores[labels > 0][:, None] - scores[labels == 0][None, :]

    if name == "scoreline":
        from scoreline.objectives import torch_loss

        return torch_loss("roc_auc")
    if name == "matrix":
        return lambda scores, labels: (torch.relu(1.0 - differences(scores, labels)) ** 2).mean() / 2.0
    if name == "MarginRankingLoss":
        ranking = torch.nn.MarginRankingLoss(margin=1.0)

        def margin_ranking(scores, labels):
            above, below = torch.broadcast_tensors(scores[labels > 0][:, None], scores[labels == 0][None, :])
            return ranking(above, below, torch.ones((1, 1)))

        return margin_ranking
    from libauc import losses

    if name == "LibAUC AUCM":
        return losses.AUCMLoss(device="cpu")
    return losses.PairwiseAUCLoss(surr_loss="squared_hinge", hparam=1.0)


def kilobytes(field):
    return int(Path("/proc/self/status").read_text().split(field + ":")[1].split()[0])


def measure(name, size, share, gigabytes):
    """Print one line of JSON."""
    import resource
    import time

    import torch

    loss = loss_of(name)
    generator = torch.Generator().manual_seed(0)

    def made(count):
        labels = (torch.rand(count, generator=generator) < share).float()
        labels[:2] = torch.tensor([0.0, 1.0])
        return (torch.randn(count, generator=generator) + labels).requires_grad_(), labels

    loss(*made(100)).backward()  # compile
    scores, labels = made(size)
    # Virtual memory in use now is the libraries', so the limit is on what follows.
    used = kilobytes("VmSize") * 1024
    resource.setrlimit(resource.RLIMIT_AS, (used + int(gigabytes * 2**30),) * 2)
    Path("/proc/self/clear_refs").write_text("5")
    before, found = kilobytes("VmRSS"), {"seconds": float("inf"), "processor": float("inf")}
    try:
        for call in range(CALLS):
            start = time.perf_counter(), time.process_time()
            scores.grad = None
            loss(scores, labels).backward()
            spent = time.perf_counter() - start[0], time.process_time() - start[1]
            if call > 0:
                found = {"seconds": min(found["seconds"], spent[0]), "processor": min(found["processor"], spent[1])}
        found["megabytes"] = (kilobytes("VmHWM") - before) / 1024
    except (RuntimeError, MemoryError) as error:
        if "memory" not in str(error).lower():
            raise
        found = {"failed": "out of memory"}
    print(json.dumps({"loss": name, "n": size, "threads": torch.get_num_threads(), **found}))


def run(options):
    out = Path(options.out)
    out.parent.mkdir(parents=True, exist_ok=True)
    for name in LOSSES:
        for size in map(int, options.sizes.split(",")):
            case = [sys.executable, __file__, "--case", name, "--sizes", str(size), "--share", str(options.share)]
            done = subprocess.run(
                [*case, "--gigabytes", str(options.gigabytes)], stdout=subprocess.PIPE, text=True, check=False
            )
            if done.returncode != 0:
                print(f"{name}, {size}: no result")
                break
            line = done.stdout.splitlines()[-1]
            print(line, flush=True)
            with out.open("a") as file:
                file.write(line + "\n")
            found = json.loads(line)
            if "failed" in found or found["seconds"] > SLOW:
                break


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", default=",".join(map(str, SIZES)))
    parser.add_argument("--share", type=float, default=0.1, help="of positives")
    parser.add_argument("--gigabytes", type=float, default=6.0)
    parser.add_argument("--out", default="bench-output/pair_losses.jsonl")
    parser.add_argument("--case", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.case:
        measure(given.case, int(given.sizes), given.share, given.gigabytes)
    else:
        run(given)
