// The place where a server over HTTP lives: its sockets, and the addresses that may be connected to.

import type { LookupAddress } from 'node:dns'
import type * as Net from 'node:net'

import { type LaneEars, type Lanes, lanes, type Parcel, type Passage } from './lane.ts'

/** Resolves a name to all its addresses, as `dns.lookup` does with `all`. */
export type Resolve = (
  name: string,
  options: { readonly all: true; readonly family?: number; readonly hints?: number },
  done: (error: NodeJS.ErrnoException | null, found: LookupAddress[]) => void,
) => void

/** What a configuration says of a place. `resolve` is the system's where it is left out. */
export type SiteOptions = {
  readonly url: string
  readonly allowPrivate: boolean
  readonly allowRedirects: boolean
  readonly resolve?: Resolve
}

/** A place that keeps its connections. `long`: a stream that stays open, which takes no place of a call. */
export type Site = {
  readonly url: URL
  /** Bytes of its answers that are not whole yet. */
  readonly held: { bytes: number }
  readonly open: (to: URL, parcel: Parcel, ears: LaneEars, long: boolean) => Passage
  /** Why a redirect to this address is not followed; null when it is. */
  readonly refuses: (from: URL, to: URL) => string | null
  /** Closes every connection, also those in use. */
  readonly close: () => void
}

/** Connections to one origin that carry calls, and those that are kept without one. */
const MAX_SOCKETS = 256
const MAX_FREE_SOCKETS = 64
/** Streams that stay open. */
const MAX_LONG = 64
/** The code of an address that may not be connected to. */
export const PRIVATE = 'ERR_ECLUSA_PRIVATE'

/** The place of this server. Loads what TLS needs on the first use of https. */
export function site(options: SiteOptions): Site {
  const url = new URL(options.url)
  const lookup = guarded(url.hostname, options)
  const all = { calls: new Map<string, Lanes>(), long: new Map<string, Lanes>() }
  return {
    url,
    held: { bytes: 0 },
    open(to, parcel, ears, long) {
      const pools = long ? all.long : all.calls
      let pool = pools.get(to.origin)
      if (pool === undefined) {
        // A server that redirects to ever new places leaves nothing here.
        for (const [origin, one] of pools) if (one.isEmpty()) pools.delete(origin)
        pool = lanes({
          ...placeOf(to),
          lookup,
          maxOpen: long ? MAX_LONG : MAX_SOCKETS,
          maxFree: long ? 1 : MAX_FREE_SOCKETS,
        })
        pools.set(to.origin, pool)
      }
      return pool.open(parcel, ears)
    },
    refuses(from, to) {
      if (!options.allowRedirects) return 'it redirects; set allow_redirects to follow it'
      if (to.protocol !== 'https:' && to.protocol !== from.protocol)
        return 'it redirects to no https'
      if (to.username !== '' || to.password !== '')
        return 'it redirects to an address with a password'
      if (options.allowPrivate || to.host === url.host || !isPrivateLiteral(to.hostname))
        return null
      return 'it redirects to a private address; set allow_private to follow it'
    },
    close() {
      for (const pool of [...all.calls.values(), ...all.long.values()]) pool.close()
    },
  }
}

/** What of an address a connection needs. */
function placeOf({ hostname, port, protocol }: URL): {
  readonly secure: boolean
  readonly host: string
  readonly port: number
} {
  const secure = protocol === 'https:'
  const usual = secure ? 443 : 80
  return {
    secure,
    host: hostname.startsWith('[') ? hostname.slice(1, -1) : hostname,
    port: port === '' ? usual : Number(port),
  }
}

/** Gives the socket only addresses that may be connected to: what is checked is what is connected. The name
 *  in the configuration may lead inside from the start; no other may, and it may not come to. */
export function guarded(own: string, { allowPrivate, resolve }: SiteOptions): Net.LookupFunction {
  let inside: boolean | null = null
  const ask: Resolve =
    resolve ??
    ((name, options, done) => process.getBuiltinModule('node:dns').lookup(name, options, done))
  return (name, options, done) => {
    const { family } = options
    const wanted =
      typeof family === 'number' ? { all: true as const, family } : { all: true as const }
    ask(name, wanted, (error, found) => {
      if (error !== null) return done(error, [])
      const isOwn = name === own
      if (isOwn) inside ??= found.some(({ address }) => isPrivate(address))
      const open = allowPrivate || (isOwn && inside === true)
      const good = open ? found : found.filter(({ address }) => !isPrivate(address))
      const [first] = good
      if (first === undefined) {
        const refusal: NodeJS.ErrnoException = new Error('a private address')
        refusal.code = PRIVATE
        return done(refusal, [])
      }
      if (options.all === true) done(null, good)
      else done(null, first.address, first.family)
    })
  }
}

/** The private address that a host name spells out, as a URL writes it. */
function isPrivateLiteral(hostname: string): boolean {
  const address = hostname.startsWith('[') ? hostname.slice(1, -1) : hostname
  return process.getBuiltinModule('node:net').isIP(address) !== 0 && isPrivate(address)
}

/** True for every address that is not a public one: of this machine, of private and shared networks, of a
 *  link, for documentation, for groups, reserved, and IPv6 forms in which one of these is wrapped. */
export function isPrivate(address: string): boolean {
  const net = process.getBuiltinModule('node:net')
  const [bare = ''] = address.split('%')
  inner ??= blocked(net)
  switch (net.isIP(bare)) {
    case 4:
      return inner.check(bare, 'ipv4')
    case 6:
      return inner.check(bare, 'ipv6')
    default:
      return true
  }
}

let inner: Net.BlockList | null = null

function blocked(net: typeof Net): Net.BlockList {
  const list = new net.BlockList()
  for (const range of RANGES_4) {
    const [from = '', bits = ''] = range.split('/')
    list.addSubnet(from, Number(bits), 'ipv4')
  }
  for (const range of RANGES_6) {
    const [from = '', bits = ''] = range.split('/')
    list.addSubnet(from, Number(bits), 'ipv6')
  }
  return list
}

/** Source: IANA special-purpose registries. */
const RANGES_4 = (
  '0.0.0.0/8 10.0.0.0/8 100.64.0.0/10 127.0.0.0/8 169.254.0.0/16 172.16.0.0/12 192.0.0.0/24 192.0.2.0/24 ' +
  '192.88.99.0/24 192.168.0.0/16 198.18.0.0/15 198.51.100.0/24 203.0.113.0/24 224.0.0.0/4 240.0.0.0/4'
).split(' ')
/** All of 64:ff9b::/96, 2002::/16 and 2001::/32 wrap IPv4 addresses that nobody checks behind a translator. */
const RANGES_6 = (
  '::/96 ::ffff:0:0:0/96 64:ff9b::/96 64:ff9b:1::/48 100::/64 2001::/23 2001:db8::/32 2002::/16 3fff::/20 5f00::/16 ' +
  'fc00::/7 fe80::/10 fec0::/10 ff00::/8'
).split(' ')
