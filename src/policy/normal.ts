// Paths and hosts in normal form: what is in another form is refused, never rewritten.

/** What is not seen at all: controls, format characters, private and unassigned ones, line separators. */
const UNSEEN = /[\p{C}\p{Zl}\p{Zp}]/u
/** What looks like a dot, a separator or a space, or is not seen though it is a letter or a mark. A server
 *  that folds these would read another path. */
const LOOK_ALIKE: ReadonlySet<number> = new Set([
  0xa0, 0x34f, 0x115f, 0x1160, 0x17b4, 0x17b5, 0x2024, 0x2025, 0x2026, 0x2044, 0x2052, 0x2215,
  0x29f8, 0x3002, 0x3164, 0xfe52, 0xfe68, 0xff0e, 0xff0f, 0xff3c, 0xff61, 0xffa0,
])
const isVariationSelector = (code: number): boolean =>
  (code >= 0xfe00 && code <= 0xfe0f) || (code >= 0xe0100 && code <= 0xe01ef)

function deceives(text: string): boolean {
  if (UNSEEN.test(text)) return true
  for (const one of text) {
    const code = one.codePointAt(0) ?? 0
    if (LOOK_ALIKE.has(code) || isVariationSelector(code)) return true
  }
  return false
}

/** Why a path is not in normal form, or null. Normal: segments between single `/`; no `.` or `..` among
 *  them (`.` alone is the current folder), no `/` at the end; no `%` followed by two hex digits, no
 *  backslash, no `:` (drives, streams, URIs), no control, invisible or look-alike characters, composed
 *  (NFC); no segment that begins or ends with a space or ends with a dot; no `~` first. */
export function pathProblem(path: string): string | null {
  if (path === '') return 'is empty'
  if (path === '/' || path === '.') return null
  if (deceives(path)) return 'has invisible or look-alike characters'
  if (path.normalize('NFC') !== path) return 'is not composed Unicode (NFC)'
  if (/[\\:]/.test(path)) return 'has a backslash or a colon'
  if (/%[0-9A-Fa-f]{2}/.test(path)) return 'has percent-encoding'
  if (path.startsWith('~')) return 'begins with a tilde'
  return segmentProblem((path.startsWith('/') ? path.slice(1) : path).split('/'))
}

function segmentProblem(segments: readonly string[]): string | null {
  if (segments.some((one) => one === '' || one === '.' || one === '..')) {
    return 'has empty or dot segments'
  }
  return segments.some((one) => /^\s|[\s.]$/u.test(one))
    ? 'has a segment with a space or dot at its edge'
    : null
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
