import { SearchloopError } from '../../errors.js';

/** Faults that only the wire knows. Their status and type stand in `error-body.ts`. */
export type WireCode =
  | 'invalid_request'
  | 'invalid_json'
  | 'context_length_exceeded'
  | 'unsupported_parameter'
  | 'invalid_api_key'
  | 'insufficient_scope'
  | 'origin_not_allowed'
  | 'model_not_found'
  | 'answer_not_found'
  | 'version_not_found'
  | 'route_not_found'
  | 'method_not_allowed'
  | 'upgrade_required'
  | 'request_too_large'
  | 'unsupported_media_type'
  | 'request_header_too_large'
  | 'too_many_requests'
  | 'model_loading'
  | 'index_loading'
  | 'store_loading'
  | 'shutting_down';

/** A request that cannot be answered. The message goes to the client as it is. */
export class RequestError extends SearchloopError {
  declare readonly code: WireCode;
  /** Path of the offending field, such as `messages[0].role`. */
  readonly param: string | null;

  constructor(code: WireCode, message: string, param: string | null = null, cause?: unknown) {
    super(code, message, cause === undefined ? {} : { cause });
    this.param = param;
  }
}

/** A request field that breaks its contract; 400 with a null code. */
export function invalidField(param: string | null, message: string): RequestError {
  return new RequestError('invalid_request', message, param);
}

/** Something that the API knows and this server does not do. */
export function unsupportedField(param: string, message: string): RequestError {
  return new RequestError('unsupported_parameter', message, param);
}
