// Paths and hosts in normal form: what is in another form is refused, never rewritten.

/** Code points that look like a dot or a separator, or that are not seen at all: format characters, fillers,
 *  variation selectors, private and unassigned ones. A server that folds them would read another path. */
const DECEPTIVE =
  /[\p{C}\p{Zl}\p{Zp}\u00a0\u034f\u115f\u1160\u17b4\u17b5\u2024\u2025\u2026\u2044\u2052\u2215\u29f8\u3002\u3164\ufe00-\ufe0f\ufe52\ufe68\uff0e\uff0f\uff3c\uff61\uffa0\u{e0100}-\u{e01ef}]/u

/** Why a path is not in normal form, or null. Normal: segments between single `/`; no `.` or `..` among
 *  them (`.` alone is the current folder), no `/` at the end; no `%` followed by two hex digits, no
 *  backslash, no `:` (drives, streams, URIs), no control, invisible or look-alike characters, composed
 *  (NFC); no segment that begins or ends with a space or ends with a dot; no `~` first. */
export function pathProblem(path: string): string | null {
  if (path === '' || path === '/' || path === '.') return path === '' ? 'is empty' : null
  if (DECEPTIVE.test(path)) return 'has invisible or look-alike characters'
  if (!path.isWellFormed() || path.normalize('NFC') !== path) return 'is not composed Unicode (NFC)'
  if (/[\\:]/.test(path)) return 'has a backslash or a colon'
  if (/%[0-9A-Fa-f]{2}/.test(path)) return 'has percent-encoding'
  if (path.startsWith('~')) return 'begins with a tilde'
  const segments = (path.startsWith('/') ? path.slice(1) : path).split('/')
  for (const segment of segments) {
    if (segment === '' || segment === '.' || segment === '..') return 'has empty or dot segments'
    if (/^\s|[\s.]$/u.test(segment)) return 'has a segment with a space or dot at its edge'
  }
  return null
}

/** True when a path in normal form is one of the bases or inside one; compared by whole segments. A
 *  relative base holds relative paths; `.` holds all of them. */
export function isUnder(path: string, bases: readonly string[]): boolean {
  if (pathProblem(path) !== null) return false
  return bases.some((base) => {
    if (base === '/') return path.startsWith('/')
    if (base === '.') return !path.startsWith('/')
    return path === base || path.startsWith(`${base}/`)
  })
}

const HOST = /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?(?:\.[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?)*$/
const IPV4 = /^(?:(?:25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])(?:\.(?!$)|$)){4}$/
const IPV6 = /^\[[0-9a-f:]{2,39}\]$/
const URL_FORM = /^(?:https?|wss?):\/\/([^/?#]+)(?:[/?#]|$)/

/** Why an entry of `host_in` is no host, or null: `name`, `*.name`, an IPv4 or bracketed IPv6 address, each
 *  with `:port` where a port is meant. */
export function hostEntryProblem(entry: string): string | null {
  const { host, port } = split(entry)
  if (port === null) return 'the port is no number'
  const name = host.startsWith('*.') ? host.slice(2) : host
  if (IPV6.test(name) || IPV4.test(name)) return null
  if (!HOST.test(name) || name.length > 253) return 'expected a host name in lower case'
  return isNumeric(name) ? 'expected an IPv4 address of four decimal numbers' : null
}

/** True when a host, or the host of an http, https, ws or wss URL, is one of the entries, its port
 *  included. Refused in any case: user names, upper case, names that are not ASCII, trailing dots, numbers
 *  that some resolver reads as an address, white space, backslashes and control characters anywhere. */
export function isHostIn(value: string, entries: readonly string[]): boolean {
  if (value.length > 8_192 || /[\s\\\p{C}]/u.test(value)) return false
  const authority = value.includes('/') ? URL_FORM.exec(value)?.[1] : value
  if (authority === undefined) return false
  const { host, port } = split(authority)
  if (port === null) return false
  const address = IPV6.test(host) || IPV4.test(host)
  if (!address && (!HOST.test(host) || host.length > 253 || isNumeric(host))) return false
  return entries.some((entry) => {
    const wanted = split(entry)
    if (wanted.port !== port) return false
    return wanted.host.startsWith('*.')
      ? !address && host.endsWith(wanted.host.slice(1))
      : host === wanted.host
  })
}

// 0x7f.1, 2130706433 and 010.1 are addresses to some resolvers.
const isNumeric = (host: string): boolean => /(?:^|\.)(?:[0-9]+|0x[0-9a-f]*)$/.test(host)

/** The host and its port; '' when none is written, null when it is no port. */
function split(authority: string): { readonly host: string; readonly port: string | null } {
  const [, host = '', , digits] = /^(\[[^\]]*\]|[^:]*)(:(.*))?$/.exec(authority) ?? []
  if (digits === undefined) return { host, port: host === '' ? null : '' }
  return {
    host,
    port: /^[1-9][0-9]{0,4}$/.test(digits) && Number(digits) <= 65_535 ? digits : null,
  }
}
