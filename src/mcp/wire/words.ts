// What a server prints on stderr, made safe to show: short lines, few a second, nothing invisible.

import { lines, type Splitter } from './lines.ts'

/** Lines a second of one upstream that are shown; the others are counted. */
const LINES_A_SECOND = 100
// Controls but the tab, what reorders or hides text on a terminal, and the line separators.
const INVISIBLE = /[^\P{Cc}\t]|[\p{Cf}\p{Zl}\p{Zp}]/gu

/** The text with every invisible or terminal-steering character written as `\u{..}`. */
export const visible = (text: string): string =>
  text.replace(INVISIBLE, (one) => `\\u{${(one.codePointAt(0) ?? 0).toString(16)}}`)

/** A splitter for stderr. `say` gets at most 100 clean lines a second; a line of more than `limitBytes`
 *  is cut and says so; what was left out is told with the next line that is shown, or at the end. */
export function words(limitBytes: number, say: (line: string) => void): Splitter {
  let second = 0
  let shown = 0
  let left = 0

  const tellLeft = (): void => {
    if (left > 0) say(`(${left} lines left out)`)
    left = 0
  }
  const show = (text: () => string): void => {
    const now = Math.floor(performance.now() / 1000)
    if (now !== second) {
      second = now
      shown = 0
    }
    if (++shown > LINES_A_SECOND) {
      left++
      return
    }
    tellLeft()
    say(text())
  }
  const splitter = lines(
    limitBytes,
    (line) => show(() => visible(line.toString('utf8'))),
    (bytes, { head }) =>
      show(() => `${visible(head.toString('utf8'))} (${bytes - head.length} bytes left out)`),
  )
  return {
    push: splitter.push,
    end() {
      splitter.end()
      tellLeft()
    },
  }
}
