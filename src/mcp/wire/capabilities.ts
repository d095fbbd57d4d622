// One set of client capabilities against another.

import { isObject, type Json, type JsonObject, object } from '../../json.ts'

/** True when everything in `wanted` is in `had`. */
export function covers(had: JsonObject, wanted: JsonObject): boolean {
  return Object.entries(wanted).every(([key, value]) => {
    const own = had[key]
    return own !== undefined && (!isObject(value) || (isObject(own) && covers(own, value)))
  })
}

/** What is in either. */
export function joined(one: JsonObject, other: JsonObject): JsonObject {
  const members: Record<string, Json | undefined> = { ...one }
  for (const [key, value] of Object.entries(other)) {
    const had = members[key]
    members[key] = isObject(had) && isObject(value) ? joined(had, value) : value
  }
  return object(members)
}
