// Reads and parses the JSON body of a request.

import type { Request, RequestHandler } from 'express';
import { unwrap } from '../json/attempt.js';
import type { BodyParser } from '../json/body-parser.js';
import type { Bodies, BodyKind } from '../json/parse.js';
import { RequestError } from '../openai/request-error.js';
import { readBytes } from './read-bytes.js';

/** Puts the bytes of the body on `req.body`. */
export function readBody(limitBytes: number): RequestHandler[] {
  const requireJson: RequestHandler = (req, _res, next) => {
    const type = req.headers['content-type'];
    // Absent is forgiven; a form or a plain text is what a foreign page can send without asking.
    if (type !== undefined && !/^application\/([\w.+-]+\+)?json\s*(;|$)/i.test(type))
      throw new RequestError(
        'unsupported_media_type',
        'expected the header "Content-Type: application/json"',
      );
    const charset = type?.match(/charset\s*=\s*"?([^\s";]+)/i)?.[1];
    if (charset !== undefined && !/^utf-?8$/i.test(charset))
      throw new RequestError('unsupported_media_type', 'expected a body in UTF-8');
    next();
  };
  const read: RequestHandler = async (req, _res, next) => {
    req.body = await readBytes(req, limitBytes);
    next();
  };
  return [requireJson, read];
}

/** @throws {RequestError} 400 for a body that is not what `kind` takes */
export async function parseBody<K extends BodyKind>(
  req: Request,
  kind: K,
  bodies: BodyParser,
): Promise<Bodies[K]> {
  const bytes = Buffer.isBuffer(req.body) ? req.body : Buffer.alloc(0);
  return unwrap(await bodies.parse(kind, bytes));
}
