// Which web page a request comes from. Browsers say it in `Origin`, which no page can write itself; where they leave it
// out (reads, pictures, links) `Sec-Fetch-Site` tells, but not over plain HTTP to a name. Clients that are no browser send
// neither.

import type { IncomingHttpHeaders } from 'node:http';
import { isIP } from 'node:net';
import type { ServerConfig } from '../../config/index.js';

/** What this server is known by. */
export type OwnNames = Pick<ServerConfig, 'host' | 'corsOrigins'>;

/**
 * Whether a page of others asks, or may: one that got in by DNS rebinding reads over plain HTTP with no header that tells, but for
 * its own name. Our own pages and those of listed origins pass; `X-Forwarded-Host` is not looked at, since any page can send it.
 */
export function isForeignPage(headers: IncomingHttpHeaders, own: OwnNames): boolean {
  const { origin, host } = headers;
  if (origin !== undefined)
    return !isListed(origin, own.corsOrigins) && !(isSameHost(headers) && isOwnName(host, own));
  const site = headers['sec-fetch-site'];
  if (site === undefined || site === 'none') return !(isOwnName(host, own) || isLocalName(host));
  return site !== 'same-origin' || !isOwnName(host, own);
}

/** Whether a list names this origin itself. `*` names nobody, and `null` is what any page can make of itself. */
export function isListed(origin: string, listed: readonly string[]): boolean {
  if (origin === 'null' || origin === '*') return false;
  const normal = normalOrigin(origin);
  return listed.some((entry) => entry === origin || (normal !== null && normalOrigin(entry) === normal));
}

/** Whether a request goes to the address that its page came from; the default port of the page's scheme may be left out. */
export function isSameHost({ origin = '', host = '' }: IncomingHttpHeaders): boolean {
  const page = webAddress(origin);
  return page !== null && webAddress(`${page.protocol}//${host}`)?.host === page.host;
}

/**
 * A name that leads here and nowhere else. Whoever owns another name can let it point to this machine once a page of
 * theirs is open (DNS rebinding), so that the page and the `Host` header agree.
 */
function isOwnName(host: string | undefined, own: OwnNames): boolean {
  const name = nameOf(host);
  if (name === null) return false;
  if (name === 'localhost' || isIP(name.replace(/^\[|\]$/g, '')) !== 0) return true;
  return nameOf(own.host) === name || own.corsOrigins.some((entry) => webAddress(entry)?.hostname === name);
}

/** No domain of the internet, but a machine or a container of this network. */
const isLocalName = (host: string | undefined): boolean => nameOf(host)?.includes('.') === false;

const nameOf = (host: string | undefined): string | null =>
  webAddress(`http://${host ?? ''}`)?.hostname ?? null;

function normalOrigin(text: string): string | null {
  return webAddress(text)?.origin ?? null;
}

/** Scheme, host and port in their normal form, and nothing else; null for anything that is no web address. */
function webAddress(text: string): URL | null {
  if (!/^https?:\/\/[^/?#@\\\s]+\/?$/i.test(text) || !URL.canParse(text)) return null;
  return new URL(text);
}
