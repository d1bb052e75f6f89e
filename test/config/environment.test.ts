import { childEnvironment, hubEnvironment } from '../../src/config/index.js';
import { ConfigError } from '../../src/errors.js';

test('the hub is the public one unless the environment says otherwise', () => {
  expect(hubEnvironment({})).toEqual({ endpoint: 'https://huggingface.co', token: null, offline: false });
  expect(
    hubEnvironment({ HF_ENDPOINT: 'http://mirror.local:8080//', HF_TOKEN: ' hf_x\n', HF_HUB_OFFLINE: '1' }),
  ).toEqual({ endpoint: 'http://mirror.local:8080', token: 'hf_x', offline: true });
  expect(hubEnvironment({ HF_ENDPOINT: '', HF_TOKEN: '', HF_HUB_OFFLINE: '0' })).toEqual(hubEnvironment({}));
});

test.each(['mirror.local', 'file:///etc', 'ftp://host'])('the address %s is refused', (endpoint) => {
  expect(() => hubEnvironment({ HF_ENDPOINT: endpoint })).toThrow(ConfigError);
  expect(() => hubEnvironment({ HF_ENDPOINT: endpoint })).toThrow(/HF_ENDPOINT/);
});

test('a program that we start gets our variables and its own', () => {
  expect(childEnvironment({ TMPDIR: '/somewhere' })).toMatchObject({
    PATH: process.env.PATH,
    TMPDIR: '/somewhere',
  });
});
