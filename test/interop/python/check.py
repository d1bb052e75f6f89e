"""What PEFT, transformers and llama.cpp make of files of ours: one task as JSON in, one answer as JSON out."""

import json
import math
import sys


def log_softmax(rows):
    out = []
    for row in rows:
        top = max(row)
        total = top + math.log(sum(math.exp(value - top) for value in row))
        out.append([value - total for value in row])
    return out


def chosen(rows, ids):
    """Log-probability of each token after the first."""
    return [float(row[token]) for row, token in zip(rows, ids[1:])]


def hub_model(folder):
    import torch
    from transformers import AutoModelForCausalLM

    torch.set_num_threads(1)
    return AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()


def score(model, ids):
    import torch

    with torch.no_grad():
        logits = model(torch.tensor([ids])).logits[0]
    return chosen(torch.log_softmax(logits.double(), -1).tolist(), ids)


def transformers(task):
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(task["folder"])
    return {
        "logprobs": score(hub_model(task["folder"]), task["ids"]),
        "tokens": tokenizer.encode(task["text"], add_special_tokens=False),
    }


def peft(task):
    from peft import PeftModel

    model = PeftModel.from_pretrained(hub_model(task["folder"]), task["adapter"]).eval()
    return {"logprobs": score(model, task["ids"])}


def make_adapter(task):
    """An adapter of PEFT's own making, with a B that is not zero."""
    import torch
    from peft import LoraConfig, get_peft_model

    torch.manual_seed(3)
    config = LoraConfig(r=3, lora_alpha=5, target_modules=["q_proj", "v_proj", "down_proj"], use_rslora=True)
    model = get_peft_model(hub_model(task["folder"]), config)
    for name, value in model.named_parameters():
        if "lora_B" in name:
            torch.nn.init.normal_(value, std=0.05)
    model.save_pretrained(task["adapter"])
    return {"logprobs": score(model.eval(), task["ids"])}


def llama_cpp(task):
    from llama_cpp import Llama

    model = Llama(task["file"], n_ctx=256, logits_all=True, verbose=False, n_threads=1)
    model.eval(task["ids"])
    rows = log_softmax([[float(value) for value in row] for row in model.scores[: len(task["ids"])]])
    tokens = model.tokenize(task["text"].encode(), add_bos=False, special=False)
    return {"logprobs": chosen(rows, task["ids"]), "tokens": tokens}


TASKS = {task.__name__: task for task in (transformers, peft, make_adapter, llama_cpp)}

if __name__ == "__main__":
    request = json.loads(sys.argv[1])
    print(json.dumps(TASKS[request["task"]](request)))
