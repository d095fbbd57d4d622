// Why a server does not run: its own last words, its status, and the variables that it misses.

import {
  type Environment,
  type Given,
  masker,
  withheld,
  withheldWays,
} from './child-environment.ts'

/** The operator's view of one server's deaths. */
export type Coroner = {
  /** Shows one clean line of stderr, without the secrets that the server was given. */
  readonly words: (line: string) => void
  /** A process ended, or would not start, for this reason; the same one is told once. `silent`: it answered
   *  nothing, so that what it lacks may be what it waits for. */
  readonly failed: (why: string, silent?: 'silent') => void
  /** A process is ready. */
  readonly lives: () => void
  /** The last reason while no process is ready, or null. */
  readonly death: () => string | null
}

/** Lines of stderr that are kept to explain a death, and characters of each. */
const LAST_WORDS = 20
const MAX_WORD = 1000
/** Variables that are named. */
const MAX_NAMES = 5

/** Explains the deaths of one server, whose whole environment was `env`, to `say`. */
export function coroner(
  config: Given,
  surroundings: {
    readonly environment: Environment
    readonly env: Readonly<Record<string, string>>
    readonly say: (text: string) => void
    /** It runs elsewhere: it is reached, not started. */
    readonly isFar?: boolean
  },
): Coroner {
  const { environment, env, say, isFar = false } = surroundings
  const next = isFar ? 'it will be tried again' : 'it will be started again'
  const well = isFar ? 'it is reached now' : 'it is running now'
  const mask = masker(environment, config)
  let last: string[] = []
  let death: string | null = null
  return {
    words(line) {
      const masked = mask(line)
      last = [...last.slice(1 - LAST_WORDS), masked.slice(0, MAX_WORD)]
      say(masked)
    },
    failed(why, silent) {
      const named = withheld(environment, env, last.join('\n')).slice(0, MAX_NAMES)
      const ways = silent === undefined || isFar ? [] : withheldWays(environment, env)
      const told = [why, ...advice('names', named), ...advice('ways', ways)].join('; ')
      if (told !== death) say(`${told}; ${next}`)
      death = told
      last = []
    },
    lives() {
      if (death !== null) say(well)
      death = null
    },
    death: () => death,
  }
}

function advice(which: 'names' | 'ways', all: readonly string[]): readonly string[] {
  if (all.length === 0) return []
  const names = all.slice(0, MAX_NAMES).join(', ')
  const lacks =
    which === 'names' ? `it names ${names}, which it was not given` : `it was not given ${names}`
  return [`${lacks}: add pass_env: [${names}], or --env with each name`]
}
