// What a verb touches besides files: two streams, the environment and the folder it was started in.

/** Data goes to `out`, words for people to `err`; both take whole lines without the line end. */
export type Io = {
  readonly out: (line: string) => void
  readonly err: (line: string) => void
  readonly env: Readonly<Record<string, string | undefined>>
  readonly cwd: string
}

/** The streams of this process. */
export const processIo = (): Io => ({
  out: (line) => void process.stdout.write(`${line}\n`),
  err: (line) => void process.stderr.write(`${line}\n`),
  env: process.env,
  cwd: process.cwd(),
})
