"""llama.cpp through llama-cpp-python's low-level API, driven by one JSON command a line on stdin.

Commands: {"op": "open", "model", "adapter"|null, "threads", "sequences", "capacity", "unified"}
          {"op": "decode", "sequences", "context", "tokens"}   -> {"seconds", "tokens"}
          {"op": "prefill", "tokens"}                           -> {"seconds", "tokens"}
          {"op": "close"}
Every answer is one JSON line on stdout. Greedy sampling: the arg max of each row of logits, as in our engine.
"""

import ctypes
import json
import sys
import time

import llama_cpp as llama
import numpy as np
from llama_cpp._logger import set_verbose


class Rival:
    def __init__(self, command):
        set_verbose(False)
        llama.llama_backend_init()
        model_parameters = llama.llama_model_default_params()
        model_parameters.n_gpu_layers = 0
        self.model = llama.llama_model_load_from_file(command["model"].encode(), model_parameters)
        if not self.model:
            raise RuntimeError(f"cannot load {command['model']}")
        parameters = llama.llama_context_default_params()
        parameters.n_ctx = command["sequences"] * command["capacity"]
        parameters.n_batch = 2048
        parameters.n_ubatch = 512
        parameters.n_seq_max = command["sequences"]
        parameters.n_threads = command["threads"]
        parameters.n_threads_batch = command["threads"]
        if hasattr(parameters, "kv_unified"):
            parameters.kv_unified = bool(command.get("unified"))
        self.context = llama.llama_init_from_model(self.model, parameters)
        if not self.context:
            raise RuntimeError("cannot make a context")
        self.vocab_size = llama.llama_vocab_n_tokens(llama.llama_model_get_vocab(self.model))
        if command.get("adapter"):
            adapter = llama.llama_adapter_lora_init(self.model, command["adapter"].encode())
            if not adapter:
                raise RuntimeError(f"cannot load {command['adapter']}")
            adapters = (llama.llama_adapter_lora_p_ctypes * 1)(adapter)
            if llama.llama_set_adapters_lora(self.context, adapters, 1, (ctypes.c_float * 1)(1.0)) != 0:
                raise RuntimeError("cannot set the adapter")
        self.batch = llama.llama_batch_init(2048, 0, 1)
        self.memory = llama.llama_get_memory(self.context)
        self.unified = bool(command.get("unified"))
        self.sequences = command["sequences"]
        self.filled = set()

    def fill(self, entries):
        """entries: (token, position, sequence, wants logits)."""
        batch = self.batch
        batch.n_tokens = len(entries)
        for i, (token, position, sequence, logits) in enumerate(entries):
            batch.token[i] = token
            batch.pos[i] = position
            batch.n_seq_id[i] = 1
            batch.seq_id[i][0] = sequence
            batch.logits[i] = 1 if logits else 0

    def run(self, entries):
        self.fill(entries)
        status = llama.llama_decode(self.context, self.batch)
        if status != 0:
            raise RuntimeError(f"llama_decode gave {status}")

    def argmax(self, row):
        pointer = llama.llama_get_logits_ith(self.context, row)
        return int(np.ctypeslib.as_array(pointer, shape=(self.vocab_size,)).argmax())

    def clear(self):
        llama.llama_memory_clear(self.memory, True)
        self.filled.clear()

    def prefill_sequence(self, sequence, ids):
        for start in range(0, len(ids), 512):
            part = ids[start : start + 512]
            last = start + len(part) == len(ids)
            self.run(
                [(t, start + i, sequence, last and i == len(part) - 1) for i, t in enumerate(part)]
            )

    def decode(self, command):
        """The context is read in once; later calls cut the sequences back to it, so that rounds stay short."""
        sequences, context, tokens = command["sequences"], command["context"], command["tokens"]
        # In a unified cache every used cell is looked at by every row: only these sequences may be there.
        if self.unified and len(self.filled) != sequences:
            self.clear()
        for sequence in range(sequences):
            if sequence in self.filled:
                llama.llama_memory_seq_rm(self.memory, sequence, context, -1)
                continue
            rng = np.random.default_rng(sequence)
            ids = [int(t) for t in rng.integers(100, self.vocab_size - 100, context)]
            self.prefill_sequence(sequence, ids)
            self.filled.add(sequence)
        current = [1000 + s for s in range(sequences)]
        for step in range(tokens + 2):
            if step == 2:
                begin = time.perf_counter()
            self.run([(current[s], context + step, s, True) for s in range(sequences)])
            current = [self.argmax(s) for s in range(sequences)]
        return {"seconds": time.perf_counter() - begin, "tokens": tokens * sequences}

    def prefill(self, command):
        rng = np.random.default_rng(command.get("seed", 0))
        ids = [int(t) for t in rng.integers(100, self.vocab_size - 100, command["tokens"])]
        # The last sequence is kept for this, so that the contexts of `decode` stay.
        last = self.sequences - 1
        if self.unified:
            self.clear()
        llama.llama_memory_seq_rm(self.memory, last, -1, -1)
        begin = time.perf_counter()
        self.prefill_sequence(last, ids)
        self.argmax(-1)
        return {"seconds": time.perf_counter() - begin, "tokens": len(ids)}


def main():
    rival = None
    for line in sys.stdin:
        command = json.loads(line)
        try:
            if command["op"] == "open":
                rival = Rival(command)
                answer = {"ok": True, "version": llama.__version__}
            elif command["op"] == "close":
                print(json.dumps({"ok": True}), flush=True)
                return
            else:
                answer = getattr(rival, command["op"])(command)
        except Exception as error:  # the driver shows it and stops
            answer = {"error": repr(error)}
        print(json.dumps(answer), flush=True)


main()
