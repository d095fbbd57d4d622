// Operators of expressions over values: arithmetic, order, membership, index.

import {
  type Budget,
  compare,
  double,
  equal,
  failed,
  isDictionary,
  isDouble,
  isFailed,
  isList,
  lift,
  memberOf,
  numberOf,
  TEXT_SHIFT,
  type Value,
} from './cel-value.ts'

/** A binary operator; neither operand is an error. */
export type Binary = (a: Value, b: Value, budget: Budget) => Value

const ordered =
  (holds: (order: number) => boolean): Binary =>
  (a, b, budget) => {
    const order = compare(a, b, budget)
    return typeof order === 'number' ? holds(order) : order
  }

/** Integers stay within 2^53-1; beyond is an error, as overflow is in CEL. */
const integer = (value: number): Value =>
  Number.isSafeInteger(value) ? value : failed('integer overflow')

const arithmetic =
  (
    ints: (a: number, b: number) => Value,
    doubles: ((a: number, b: number) => number) | null,
  ): Binary =>
  (a, b) => {
    if (typeof a === 'number' && typeof b === 'number') return ints(a, b)
    if (doubles === null || !isDouble(a) || !isDouble(b)) {
      return failed('no such overload: arithmetic needs two ints or two doubles')
    }
    return double(doubles(numberOf(a) ?? Number.NaN, numberOf(b) ?? Number.NaN))
  }

const plus = arithmetic(
  (a, b) => integer(a + b),
  (a, b) => a + b,
)

/** Longest string or list that `+` makes. */
const MAX_JOINED = 1_000_000

const join: Binary = (a, b, budget) => {
  if (typeof a === 'string' && typeof b === 'string') {
    budget.steps -= (a.length + b.length) >> TEXT_SHIFT
    return a.length + b.length > MAX_JOINED ? failed('the string is too long') : a + b
  }
  if (isList(a) && isList(b)) {
    budget.steps -= a.length + b.length
    if (budget.steps < 0) return failed('over budget')
    return [...a, ...b].map(lift)
  }
  return plus(a, b, budget)
}

const contained: Binary = (a, b, budget) => {
  if (isList(b)) return b.some((item) => equal(a, lift(item), budget))
  if (!isDictionary(b)) return failed('no such overload: in needs a list or a map')
  return typeof a === 'string' ? Object.hasOwn(b, a) : failed('no such overload: a key is a string')
}

/** `list[int]` and `map[string]`. */
export const index: Binary = (a, b) => {
  if (isDictionary(a))
    return typeof b === 'string' ? memberOf(a, b) : failed('no such overload: a key is a string')
  if (!isList(a)) return failed('no such overload: [] needs a list or a map')
  const at = numberOf(b)
  if (at === null || !Number.isInteger(at)) return failed('no such overload: an index is an int')
  return at >= 0 && at < a.length ? lift(a[at]) : failed('index out of range')
}

/** The operators by their name in the syntax tree. */
export const BINARY: ReadonlyMap<string, Binary> = new Map<string, Binary>([
  ['==', (a, b, budget) => equal(a, b, budget)],
  ['!=', (a, b, budget) => !equal(a, b, budget)],
  ['<', ordered((order) => order < 0)],
  ['<=', ordered((order) => order <= 0)],
  ['>', ordered((order) => order > 0)],
  ['>=', ordered((order) => order >= 0)],
  ['+', join],
  [
    '-',
    arithmetic(
      (a, b) => integer(a - b),
      (a, b) => a - b,
    ),
  ],
  [
    '*',
    arithmetic(
      (a, b) => integer(a * b),
      (a, b) => a * b,
    ),
  ],
  [
    '/',
    arithmetic(
      (a, b) => (b === 0 ? failed('division by zero') : integer(Math.trunc(a / b) + 0)),
      (a, b) => a / b,
    ),
  ],
  ['%', arithmetic((a, b) => (b === 0 ? failed('modulus by zero') : (a % b) + 0), null)],
  ['in', contained],
  ['[]', index],
])

/** `-x` of an int or a double. */
export function negate(value: Value): Value {
  if (typeof value === 'number') return 0 - value
  if (isFailed(value)) return value
  const number = isDouble(value) ? numberOf(value) : null
  return number === null ? failed('no such overload: -') : double(-number)
}
