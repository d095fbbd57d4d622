// A ceiling for the part of V8's heap in which new objects begin: what is alive there is small, and it grows.

import { getHeapSpaceStatistics, setFlagsFromString } from 'node:v8'

/** From this size on, bytes, the young generation does not grow any more. By itself it takes 128 MiB on a
 *  large machine, although half a megabyte of it is alive at a collection. */
const ENOUGH: number = 32 * 1024 * 1024
const LOOK_MS = 1_000

/** Holds the young generation of this process near 32 MiB while the process lives. A flag is the only way
 *  in: the size itself can be given at the start of Node alone. V8 reads the factor when it is about to
 *  grow. After a quiet time it may have shrunk, and is let grow again. */
export function boundYoung(): void {
  let held = false
  const look = (): void => {
    const space = getHeapSpaceStatistics().find(({ space_name: name }) => name === 'new_space')
    const hold = (space?.space_size ?? 0) >= ENOUGH
    if (hold === held) return
    held = hold
    setFlagsFromString(`--semi-space-growth-factor=${hold ? 1 : 2}`)
  }
  setInterval(look, LOOK_MS).unref()
}
