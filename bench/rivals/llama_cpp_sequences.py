"""Continuous batching over llama.cpp: the engine's side of a rollout loop, for the rollouts benchmark.

Reads commands from stdin, one JSON a line, while it decodes:
  {"op": "open", "sequence"}                       a free sequence id
  {"op": "append", "sequence", "ids"}
  {"op": "generate", "sequence", "turn", "most"}   greedy, until `most` tokens, an end token or `stop`
  {"op": "stop", "sequence", "length"}             ends the turn; tokens beyond `length` are forgotten
  {"op": "close", "sequence"}
Writes one line a step: [[sequence, turn, token], ...].
"""

import json
import queue
import sys
import threading

import llama_cpp as llama
import numpy as np

MODEL, THREADS, SEQUENCES, CAPACITY, UNIFIED = (
    sys.argv[1],
    int(sys.argv[2]),
    int(sys.argv[3]),
    int(sys.argv[4]),
    sys.argv[5] == "unified",
)
STEP_TOKENS = 512


class Sequence:
    def __init__(self):
        self.position = 0
        self.pending = []
        self.turn = None
        self.left = 0


def open_context():
    llama.llama_backend_init()
    model_parameters = llama.llama_model_default_params()
    model_parameters.n_gpu_layers = 0
    model = llama.llama_model_load_from_file(MODEL.encode(), model_parameters)
    parameters = llama.llama_context_default_params()
    parameters.n_ctx = SEQUENCES * CAPACITY
    parameters.n_batch = STEP_TOKENS
    parameters.n_ubatch = STEP_TOKENS
    parameters.n_seq_max = SEQUENCES
    parameters.n_threads = THREADS
    parameters.n_threads_batch = THREADS
    parameters.kv_unified = UNIFIED
    context = llama.llama_init_from_model(model, parameters)
    if not context:
        raise RuntimeError("cannot make a context")
    return model, context


def read_lines(commands):
    for line in sys.stdin:
        commands.put(json.loads(line))
    commands.put({"op": "end"})


def main():
    model, context = open_context()
    vocab = llama.llama_model_get_vocab(model)
    vocab_size = llama.llama_vocab_n_tokens(vocab)
    memory = llama.llama_get_memory(context)
    batch = llama.llama_batch_init(STEP_TOKENS, 0, 1)
    sequences = {}
    commands = queue.Queue()
    threading.Thread(target=read_lines, args=(commands,), daemon=True).start()
    print(json.dumps({"ready": True}), flush=True)

    def accept(command):
        op = command["op"]
        if op == "end":
            sys.exit(0)
        sequence_id = command["sequence"]
        if op == "open":
            sequences[sequence_id] = Sequence()
            llama.llama_memory_seq_rm(memory, sequence_id, -1, -1)
            return
        sequence = sequences[sequence_id]
        if op == "append":
            sequence.pending.extend(command["ids"])
        elif op == "generate":
            sequence.turn, sequence.left = command["turn"], command["most"]
        elif op == "stop":
            sequence.turn = None
            # Tokens that were sampled but not read in yet are among the pending ones.
            length = command["length"]
            keep = max(0, length - sequence.position)
            sequence.pending = sequence.pending[:keep]
            if length < sequence.position:
                llama.llama_memory_seq_rm(memory, sequence_id, length, -1)
                sequence.position = length
        elif op == "close":
            del sequences[sequence_id]

    while True:
        active = [s for s in sequences.values() if s.turn is not None and s.pending]
        try:
            accept(commands.get(block=not active))
            while True:
                accept(commands.get_nowait())
        except queue.Empty:
            pass
        batch.n_tokens = 0
        rows = []
        for sequence_id, sequence in sequences.items():
            if sequence.turn is None or not sequence.pending:
                continue
            room = STEP_TOKENS - batch.n_tokens
            part = sequence.pending[:room]
            for i, token in enumerate(part):
                at = batch.n_tokens
                batch.token[at] = token
                batch.pos[at] = sequence.position + i
                batch.n_seq_id[at] = 1
                batch.seq_id[at][0] = sequence_id
                batch.logits[at] = 1 if i == len(sequence.pending) - 1 else 0
                if batch.logits[at]:
                    rows.append((at, sequence_id))
                batch.n_tokens += 1
            sequence.position += len(part)
            sequence.pending = sequence.pending[len(part) :]
        if batch.n_tokens == 0:
            continue
        status = llama.llama_decode(context, batch)
        if status != 0:
            raise RuntimeError(f"llama_decode gave {status}")
        step = []
        for row, sequence_id in rows:
            pointer = llama.llama_get_logits_ith(context, row)
            token = int(np.ctypeslib.as_array(pointer, shape=(vocab_size,)).argmax())
            sequence = sequences[sequence_id]
            step.append([sequence_id, sequence.turn, token])
            sequence.pending.append(token)
            sequence.left -= 1
            if sequence.left <= 0 or llama.llama_vocab_is_eog(vocab, token):
                sequence.turn = None
        if step:
            print(json.dumps(step), flush=True)


main()
