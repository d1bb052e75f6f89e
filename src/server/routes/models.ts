// GET /v1/models and /v1/models/{id}.

import type { RequestHandler } from 'express';
import { type Policy, requirePolicy, type ServerContext } from '../context.js';
import { METHODS, MODEL, offeredAdapters, resolveModel } from '../openai/model-name.js';

interface ModelObject {
  readonly id: string;
  readonly object: 'model';
  readonly created: number;
  readonly owned_by: string;
  /** Model whose weights answer. */
  readonly root: string;
  readonly parent: string | null;
  readonly max_model_len: number;
  readonly permission: readonly never[];
  readonly searchloop: { readonly method: string; readonly adapter_version: string };
}

export function listModels(context: ServerContext): RequestHandler {
  return (_req, res) => {
    const policy = requirePolicy(context.parts);
    const ids = [
      MODEL,
      ...METHODS.map((method) => `${MODEL}:${method}`),
      `${MODEL}@base`,
      ...offeredAdapters(policy.engine).map(({ name }) => `${MODEL}@${name}`),
    ];
    res.json({ object: 'list', data: [...new Set(ids)].map((id) => modelObject(id, policy, context)) });
  };
}

/** Ids hold ':', '@' and perhaps '/': the route hands over all path segments, decoded. */
export function retrieveModel(context: ServerContext): RequestHandler {
  return (req, res) => {
    const segments = req.params['id'] as unknown as string | readonly string[];
    const id = typeof segments === 'string' ? segments : segments.join('/');
    res.json(modelObject(id, requirePolicy(context.parts), context));
  };
}

function modelObject(id: string, policy: Policy, context: ServerContext): ModelObject {
  const target = resolveModel(id, policy.engine, context.liveMethods);
  const { info } = policy.engine;
  return {
    id,
    object: 'model',
    created: context.startedAt,
    owned_by: MODEL,
    root: info.modelId,
    parent: id === MODEL ? null : MODEL,
    max_model_len: info.maxSequenceTokens,
    permission: [],
    searchloop: { method: target.method, adapter_version: target.adapterVersion },
  };
}
