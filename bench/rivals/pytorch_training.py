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
    texts = job["texts"]
    ids = torch.tensor([text["tokenIds"] for text in texts])
    targets = torch.tensor(texts[0]["targets"])
    at_once = max(1, job["microBatchTokens"] // ids.shape[1])
    seconds, losses = [], []
    for _ in range(job["steps"]):
        begin = time.perf_counter()
        total = 0.0
        for part in ids.split(at_once):
            # Only positions that are learnt from reach the output layer, as on our side.
            logits = model(input_ids=part, logits_to_keep=targets - 1, use_cache=False).logits
            loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), part[:, targets].flatten())
            loss = loss * (len(part) / len(ids))
            loss.backward()
            total += loss.item()
        torch.nn.utils.clip_grad_norm_(trained, job["maxGradientNorm"])
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        losses.append(total)
        seconds.append(time.perf_counter() - begin)
    with open("/proc/self/status") as status:
        peak = int(re.search(r"VmHWM:\s+(\d+) kB", status.read())[1]) / 1024
    print(json.dumps({"seconds": seconds, "losses": losses, "peakMebibytes": peak}))


main()
