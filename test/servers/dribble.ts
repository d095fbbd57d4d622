// Writes messages to stdout in three pieces each, one message after the other.

const pieces: Buffer[] = []

/** Queues one message; its pieces leave a few milliseconds apart. */
export function dribble(bytes: Buffer): void {
  const third = Math.ceil(bytes.length / 3)
  const isIdle = pieces.length === 0
  for (const n of [0, 1, 2]) pieces.push(bytes.subarray(n * third, (n + 1) * third))
  if (isIdle) next()
}

function next(): void {
  const [piece] = pieces
  if (piece === undefined) return
  process.stdout.write(piece)
  setTimeout(() => {
    pieces.shift()
    next()
  }, 4)
}
