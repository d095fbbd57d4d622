// What a verb touches besides files: two streams, the environment and the folder it was started in.

/** Data goes to `out`, words for people to `err`; both take whole lines without the line end. */
export type Io = {
  readonly out: (line: string) => void
  readonly err: (line: string) => void
  readonly env: Readonly<Record<string, string | undefined>>
  readonly cwd: string
}

/** Words that wait for a reader, in bytes; beyond them lines are dropped and counted. Most hosts of MCP
 *  servers never read stderr, and a flooding server must not fill our memory with what it says. */
const MAX_WAITING = 1024 * 1024

/** The streams of this process. Words are dropped while nobody reads them, data never is. */
export const processIo = (): Io => ({
  out: (line) => void process.stdout.write(`${line}\n`),
  err: say,
  env: process.env,
  cwd: process.cwd(),
})

let dropped = 0
function say(line: string): void {
  const { stderr } = process
  if (stderr.writableLength > MAX_WAITING) {
    dropped++
    return
  }
  if (dropped > 0) stderr.write(`eclusa: ${dropped} lines were not shown, for nobody read them\n`)
  dropped = 0
  stderr.write(`${line}\n`)
}
