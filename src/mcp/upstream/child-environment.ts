// What a server process inherits: a short list by name, and what its configuration says; nothing else.

/** The variables of this process, as in `process.env`. */
export type Environment = Readonly<Record<string, string | undefined>>

/** What the configuration gives one upstream: `env` literally, `passEnv` names of ours to hand on. */
export type Given = {
  readonly env: Readonly<Record<string, string>>
  readonly passEnv: readonly string[]
}

const POSIX = 'PATH HOME USER LOGNAME SHELL TERM LANG TZ TMPDIR'.split(' ')
const WINDOWS = (
  'APPDATA COMSPEC HOMEDRIVE HOMEPATH LOCALAPPDATA PATH PATHEXT PROCESSOR_ARCHITECTURE PROGRAMDATA ' +
  'PROGRAMFILES SYSTEMDRIVE SYSTEMROOT TEMP TMP USERNAME USERPROFILE WINDIR'
).split(' ')
const PROXY = /^(?:https?|ftp|all|no)_proxy$/i
/** What a program needs in some networks before it reaches anything: `npx` waits without a word for lack of it. */
const NETWORK =
  /^(?:(?:https?|ftp|all)_proxy|npm_config_(?:\w*proxy|registry|cafile)|node_extra_ca_certs|ssl_cert_(?:file|dir)|requests_ca_bundle)$/i
const USERINFO = /^([a-z][a-z0-9+.-]*:\/\/)?[^/?#]*@/i
/** Shorter values are too common in ordinary words to be hidden from what a server prints. */
const MIN_MASKED = 8
/** Shorter names are too common in ordinary words to be told as a cause. */
const MIN_NAMED = 4

/** The whole environment of a child. Exported shell functions are left out; a proxy variable of ours that
 *  is passed on loses its user name and password. */
export function childEnvironment(
  ours: Environment,
  given: Given,
  platform: NodeJS.Platform,
): Record<string, string> {
  const made: Record<string, string> = {}
  const names = platform === 'win32' ? WINDOWS : POSIX
  for (const [name, value] of Object.entries(ours)) {
    const asked = given.passEnv.includes(name)
    const usual = names.includes(platform === 'win32' ? name.toUpperCase() : name)
    if (value === undefined || !(asked || usual || name.startsWith('LC_'))) continue
    // bash exports a function as a value of this form; a child shell would evaluate it.
    if (value.startsWith('()')) continue
    made[name] = PROXY.test(name) ? value.replace(USERINFO, '$1') : value
  }
  return { ...made, ...given.env }
}

/** Replaces the values that an upstream was given by the names they were given under, so that a server
 *  that prints its token does not put it into our log. */
export function masker(ours: Environment, given: Given): (text: string) => string {
  const passed = given.passEnv.map((name) => [name, ours[name] ?? ''] as const)
  const secrets = [...Object.entries(given.env), ...passed]
    .filter(([, value]) => value.length >= MIN_MASKED)
    .sort(([, a], [, b]) => b.length - a.length)
  return (text) => {
    let masked = text
    for (const [name, value] of secrets) masked = masked.replaceAll(value, `$${name}`)
    return masked
  }
}

/** The variables of ours that the child did not get and that its words name, in order of name. */
export function withheld(
  ours: Environment,
  theirs: Readonly<Record<string, string>>,
  words: string,
): readonly string[] {
  const said = new Set(words.match(/[A-Za-z_][A-Za-z0-9_]*/g))
  return Object.keys(ours)
    .filter((name) => name.length >= MIN_NAMED && !(name in theirs) && said.has(name))
    .sort()
}

/** The variables of ours that lead to a network and that the child did not get, in order of name. */
export const withheldWays = (
  ours: Environment,
  theirs: Readonly<Record<string, string>>,
): readonly string[] =>
  Object.keys(ours)
    .filter((name) => NETWORK.test(name) && !(name in theirs))
    .sort()
