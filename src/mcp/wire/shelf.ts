// What comes and goes with each call, found by its key and forgotten at once.

/** As a Map of its size. Values come in the order in which they were set. */
export type Shelf<K, V> = {
  readonly size: () => number
  readonly get: (key: K) => V | undefined
  readonly has: (key: K) => boolean
  readonly set: (key: K, value: V) => void
  /** False when there was none. */
  readonly delete: (key: K) => boolean
  readonly values: () => V[]
  readonly clear: () => void
}

/** An empty shelf. A Map or Set that grows and shrinks all the time leaves tables behind that refer to the
 *  tables after them, and keeps whatever it held alive until the next full collection. So the map in here
 *  holds numbers of places only, and a place is emptied when its value goes. */
export function shelf<K extends string | number, V>(): Shelf<K, V> {
  const places = new Map<K, number>()
  const free: number[] = []
  let held: (V | undefined)[] = []
  const at = (place: number | undefined): V | undefined =>
    place === undefined ? undefined : held[place]
  return {
    size: () => places.size,
    get: (key) => at(places.get(key)),
    has: (key) => places.has(key),
    set(key, value) {
      const place = places.get(key) ?? free.pop() ?? held.length
      held[place] = value
      places.set(key, place)
    },
    delete(key) {
      const place = places.get(key)
      if (place === undefined) return false
      held[place] = undefined
      free.push(place)
      return places.delete(key)
    },
    values: () => [...places.values()].map(at).filter((value) => value !== undefined),
    clear() {
      places.clear()
      free.length = 0
      held = []
    },
  }
}
