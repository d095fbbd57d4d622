// Servers over real sockets for the tests of the server side.

import type { TestContext } from 'node:test'

import type { UrlUpstream } from '../../../src/policy/config.ts'
import { type Rig, start } from '../upstream/rig.ts'

/** A configuration of one upstream with the defaults of the product, but for what is given. */
export const far = (url: string, some: Partial<UrlUpstream> = {}): UrlUpstream => ({
  kind: 'url',
  name: 's',
  url,
  headers: {},
  allowRedirects: false,
  allowPrivate: false,
  era: 'auto',
  share: false,
  probeMs: 15_000,
  callMs: 300_000,
  callMaxMs: 1_800_000,
  listMs: 10_000,
  ...some,
})

/** Reaches this one server. */
export const reach = (
  t: TestContext,
  url: string,
  some: Partial<UrlUpstream> = {},
  more: Parameters<typeof start>[2] = {},
): Rig => start(t, [far(url, some)], more)
