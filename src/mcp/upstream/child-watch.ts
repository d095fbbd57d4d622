// What ends the groups of our servers when we are killed: one small process at the other end of a pipe.

import type { Writable } from 'node:stream'

/** Told with every change: the numbers of all groups on one line. Only a whole line counts. When the pipe
 *  ends, we are gone: the servers read the same from their stdin and have a second, then SIGTERM, then
 *  SIGKILL. A group whose leader was born at another time than the one that was told is not ours: the
 *  number was used again. Where there is no /proc this cannot be seen, and is left to the size of the
 *  numbers. `$p -gt 1`: minus one would be every process. The watcher itself runs apart from the shell
 *  that starts it, so that who kills a tree by its parents does not find it. */
const SCRIPT = `
PATH=/usr/bin:/bin
set -f
trap '' HUP INT TERM
born() { l=; read -r l <"/proc/$1/stat"; set -- \${l##*) }; b=\${20}; }
send() {
  none=1
  for g in $all; do
    p=\${g%:*}; born "$p"
    case $b in ''|"\${g#*:}") kill "-$1" "-$p" && none=0;; esac
  done
  return $none
}
{
  all=
  while read -r list; do
    all=
    for p in $list; do [ "$p" -gt 1 ] && born "$p" && all="$all $p:$b"; done
  done
  send 0 && sleep 1
  send TERM && sleep 1
  send KILL
} <&3 3<&- &
`

/** The program and arguments that watch for the process `pid`, whose number only serves those who read a
 *  list of processes. The pipe is its descriptor 3: Node closes a stdin when the program that it started
 *  ends. Needs a POSIX shell; sleep, where it is missing, is done without. */
export const watcherCommand = (pid: number): readonly [string, ...string[]] => [
  '/bin/sh',
  '-c',
  SCRIPT,
  'eclusa-watch',
  String(pid),
]

/** Starts a watcher and gives its pipe, or why there is none. `lost` is called when it is gone. */
export type Launch = (lost: (why: string) => void) => Writable | string

/** The groups that are to end with us, and the one watcher that knows them all. */
export type Groups = {
  /** Each of our groups, oldest first. */
  readonly all: ReadonlySet<number>
  /** The watcher is told of the group; the first one starts it. `say` gets at most one line, when there
   *  is no watcher. */
  readonly add: (group: number, say: (line: string) => void) => void
  /** The group has ended, or was killed. */
  readonly remove: (group: number) => void
}

/** From the loss of a watcher to the next one; doubles up to the other, which also is the age of a watcher
 *  whose loss is a new story. */
const FIRST_WAIT_MS = 100
const MAX_WAIT_MS = 60_000

/** No groups yet, and no watcher. With null for `launch` there never is one. */
export function watched(launch: Launch | null): Groups {
  const all = new Set<number>()
  let pipe: Writable | null = null
  let timer: NodeJS.Timeout | undefined
  let wait = FIRST_WAIT_MS
  let told = false
  let say: ((line: string) => void) | null = null

  const tell = (): void => {
    // One that does not read gets the newest list once it does: nothing piles up here.
    if (pipe !== null && !pipe.writableNeedDrain) pipe.write(`${[...all].join(' ')}\n`)
  }
  const again = (why: string, age: number): void => {
    pipe = null
    if (age > MAX_WAIT_MS) {
      wait = FIRST_WAIT_MS
      told = false
    }
    if (!told) say?.(lossLine(why))
    told = true
    timer = setTimeout(start, wait).unref()
    wait = Math.min(MAX_WAIT_MS, wait * 2)
  }
  const start = (): void => {
    timer = undefined
    if (launch === null || all.size === 0) return
    const at = performance.now()
    const opened = launch((why) => {
      if (pipe !== null && pipe === opened) again(why, performance.now() - at)
    })
    if (typeof opened === 'string') return again(opened, 0)
    pipe = opened
    pipe.on('drain', tell)
    tell()
  }
  return {
    all,
    add(group, words) {
      all.add(group)
      say = words
      if (pipe === null && timer === undefined) start()
      else tell()
    },
    remove(group) {
      all.delete(group)
      tell()
    },
  }
}

const lossLine = (why: string): string =>
  `the watcher of server processes is gone (${why}) and is started again; while there is none, a server ` +
  'that ignores the end of its stdin outlives a killed Eclusa'
