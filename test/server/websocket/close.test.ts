import fc from 'fast-check';
import { closeReason } from '../../../src/server/websocket/close.js';

test('a reason fits a close frame, on a character border', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary', maxLength: 500 }), (text) => {
      const reason = closeReason(text);
      expect(Buffer.byteLength(reason)).toBeLessThanOrEqual(123);
      expect(Buffer.from(text).toString().startsWith(reason)).toBe(true);
      expect(reason.includes('\ufffd')).toBe(Buffer.from(reason).toString().includes('\ufffd'));
    }),
  );
  expect(closeReason('x'.repeat(500))).toHaveLength(123);
  expect(closeReason('🫠'.repeat(100))).toBe('🫠'.repeat(30));
});
