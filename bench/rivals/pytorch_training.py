"""The rival of `npm run bench -- training`: LoRA steps of PyTorch with PEFT. A job as JSON in, times and losses out."""

import json
import re
import sys
import time
import warnings

import torch

# Before the first parallel region: its threads take the mode over.
torch.set_flush_denormal(True)

from peft import PeftModel  # noqa: E402
from transformers import AutoModelForCausalLM  # noqa: E402
from transformers.utils import logging  # noqa: E402

warnings.simplefilter("ignore", FutureWarning)
logging.disable_progress_bar()


def main():
    job = json.load(sys.stdin)
    torch.set_num_threads(job["threads"])
    base = AutoModelForCausalLM.from_pretrained(job["hub"], dtype=torch.float32, attn_implementation="sdpa")
    model = PeftModel.from_pretrained(base, job["adapter"], is_trainable=True).train()
    trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
    optimizer = torch.optim.AdamW(trained, lr=job["learningRate"], weight_decay=0.0)
    ids = torch.tensor([job["tokenIds"]])
    targets = torch.tensor(job["targets"])
    seconds, losses = [], []
    for _ in range(job["steps"]):
        begin = time.perf_counter()
        # Only positions that are learnt from reach the output layer, as on our side.
        logits = model(input_ids=ids, logits_to_keep=targets - 1, use_cache=False).logits[0]
        loss = torch.nn.functional.cross_entropy(logits, ids[0, targets])
        loss.backward()
        torch.nn.utils.clip_grad_norm_(trained, job["maxGradientNorm"])
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        losses.append(loss.item())
        seconds.append(time.perf_counter() - begin)
    with open("/proc/self/status") as status:
        peak = int(re.search(r"VmHWM:\s+(\d+) kB", status.read())[1]) / 1024
    print(json.dumps({"seconds": seconds, "losses": losses, "peakMebibytes": peak}))


main()
