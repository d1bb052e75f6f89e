// Routes and what stands before and behind them.

import express, { type Express } from 'express';
import { adminRoutes } from './admin/loop-routes.js';
import type { ServerContext } from './context.js';
import { type KeyRing, requireKey, requireScope } from './http/api-keys.js';
import { readBody } from './http/body.js';
import { cors } from './http/cors.js';
import { errorHandler, methodNotAllowed, notFound } from './http/errors.js';
import { lastRequest } from './http/last-request.js';
import { requestId } from './http/request-id.js';
import { slowReaders } from './http/slow-readers.js';
import { RequestError } from './openai/request-error.js';
import { chatCompletions } from './routes/chat-completions.js';
import { feedback } from './routes/feedback.js';
import { healthz, readyz } from './routes/health.js';
import { listModels, retrieveModel } from './routes/models.js';
import { retrieve } from './routes/retrieve.js';

export function createApp(context: ServerContext, keys: KeyRing): Express {
  const { settings } = context;
  const app = express();
  app.disable('x-powered-by');
  app.disable('etag');
  app.use(requestId(context.logger), cors(settings.corsOrigins), slowReaders(settings.slowReaderTimeoutMs));
  app.use(lastRequest(context.activity));

  app.get('/healthz', healthz());
  app.get('/readyz', readyz(context));
  app.all(['/healthz', '/readyz'], methodNotAllowed('GET'));

  app.use('/admin', adminRoutes(context, keys));
  app.use(['/v1', '/retrieve'], requireKey(keys, settings));
  const body = readBody(settings.bodyLimitBytes);
  app.post('/v1/feedback', requireScope('feedback'), body, feedback(context));
  app.all('/v1/feedback', methodNotAllowed('POST'));
  app.use(['/v1', '/retrieve'], requireScope('ask'));
  app.post('/v1/chat/completions', body, chatCompletions(context));
  app.all('/v1/chat/completions', methodNotAllowed('POST'));
  app.get('/v1/models', listModels(context));
  app.get('/v1/models/*id', retrieveModel(context));
  app.all(['/v1/models', '/v1/models/*id'], methodNotAllowed('GET'));
  app.get('/v1/stream', (_req, res) => {
    res.set('upgrade', 'websocket');
    throw new RequestError('upgrade_required', 'expected a WebSocket upgrade here');
  });
  app.all('/v1/stream', methodNotAllowed('GET'));
  if (settings.retrieveRoute) {
    app.post('/retrieve', body, retrieve(context));
    app.all('/retrieve', methodNotAllowed('POST'));
  }
  app.use(notFound(), errorHandler());
  return app;
}
