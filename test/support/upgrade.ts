/** Head of a request for the WebSocket of events, as a client of its own would send it. */
export const UPGRADE = [
  'GET /v1/stream HTTP/1.1',
  'Host: x',
  'Connection: upgrade',
  'Upgrade: websocket',
  'Sec-WebSocket-Version: 13',
  'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==',
].join('\r\n');
