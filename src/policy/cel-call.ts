// Functions and macros of expressions.

import type { ASTNode } from '@marcbachmann/cel-js'

import {
  type Budget,
  type Code,
  failed,
  type Frame,
  isFailed,
  lift,
  sizeOf,
  TEXT_SHIFT,
  type Value,
} from './cel-value.ts'
import { linear } from './regex.ts'

/** Applied to one or two operands, none of them an error. */
type Apply = (a: Value, b: Value, budget: Budget) => Value

/** `plain`: may also be written `size(x)`. `build` sees the operands' nodes once, at compile time, and
 *  gives the sentence for which it refuses them. */
export type Fn = {
  readonly plain: boolean
  readonly operands: number
  readonly build: (operands: readonly ASTNode[]) => Apply | string
}

const text =
  (holds: (a: string, b: string) => boolean): Apply =>
  (a, b, budget) => {
    if (typeof a !== 'string' || typeof b !== 'string') {
      return failed('no such overload: this needs two strings')
    }
    budget.steps -= (a.length + b.length) >> TEXT_SHIFT
    return holds(a, b)
  }

const fixed =
  (apply: Apply): Fn['build'] =>
  () =>
    apply

/** Longest text that `contains` looks through: its worst case is the product of both lengths. */
const MAX_CONTAINS = 100_000

const contains: Apply = (a, b, budget) => {
  if (typeof a === 'string' && typeof b === 'string') {
    if (a.length > MAX_CONTAINS) return failed('over budget: the string is too long')
    budget.steps -= (a.length * Math.min(b.length, 64)) >> TEXT_SHIFT
    if (budget.steps < 0) return failed('over budget')
  }
  return text((x, y) => x.includes(y))(a, b, budget)
}

const matches: Fn['build'] = (operands) => {
  const pattern = operands[1]
  if (pattern?.op !== 'value' || typeof pattern.args !== 'string') {
    return 'the pattern of matches() is a literal string here'
  }
  const engine = linear(pattern.args)
  if ('problem' in engine) return engine.problem
  return (a, _b, budget) => {
    if (typeof a !== 'string') return failed('no such overload: matches() needs a string')
    budget.steps -= a.length >> TEXT_SHIFT
    return budget.steps < 0 || !engine.fits(a) ? failed('over budget') : engine.test(a)
  }
}

/** The functions by name. */
export const FUNCTIONS: ReadonlyMap<string, Fn> = new Map<string, Fn>([
  ['size', { plain: true, operands: 1, build: fixed((a, _b, budget) => sizeOf(a, budget)) }],
  ['startsWith', { plain: false, operands: 2, build: fixed(text((a, b) => a.startsWith(b))) }],
  ['endsWith', { plain: false, operands: 2, build: fixed(text((a, b) => a.endsWith(b))) }],
  ['contains', { plain: false, operands: 2, build: fixed(contains) }],
  ['matches', { plain: true, operands: 2, build: matches }],
])

/** `bodies`: how many expressions may follow the variable. */
export type Macro = {
  readonly bodies: readonly number[]
  readonly run: (
    items: readonly (Value | undefined)[],
    bodies: readonly Code[],
    at: { readonly frame: Frame; readonly slot: number },
  ) => Value
}

const yes: Code = () => true

/** `exists` ends at true, `all` at false; the value that ends it wins over an error. */
const quantified =
  (ends: boolean): Macro['run'] =>
  (items, [body = yes], { frame, slot }) => {
    let error: Value | null = null
    for (const item of items) {
      frame.locals[slot] = lift(item)
      const value = body(frame)
      if (value === ends) return ends
      if (frame.steps < 0) return failed('over budget')
      if (typeof value !== 'boolean') {
        error ??= isFailed(value) ? value : failed('no such overload: true or false is needed')
      }
    }
    return error ?? !ends
  }

const existsOne: Macro['run'] = (items, [body = yes], { frame, slot }) => {
  let count = 0
  for (const item of items) {
    frame.locals[slot] = lift(item)
    const value = body(frame)
    if (typeof value !== 'boolean') {
      return isFailed(value) ? value : failed('no such overload: true or false is needed')
    }
    if (value) count++
  }
  return count === 1
}

/** Keeps what `keep` holds for, each through `make`; the first error ends it. */
function gather(
  items: readonly (Value | undefined)[],
  { keep, make }: { readonly keep: Code; readonly make: Code | null },
  { frame, slot }: { readonly frame: Frame; readonly slot: number },
): Value {
  const made: Value[] = []
  for (const item of items) {
    const lifted = lift(item)
    frame.locals[slot] = lifted
    const kept = keep(frame)
    if (typeof kept !== 'boolean') {
      return isFailed(kept) ? kept : failed('no such overload: true or false is needed')
    }
    if (!kept) continue
    const value = make === null ? lifted : make(frame)
    if (isFailed(value)) return value
    made.push(value)
  }
  return made
}

/** The macros by name; `has` is no macro over a list and stands in `cel.ts`. */
export const MACROS: ReadonlyMap<string, Macro> = new Map<string, Macro>([
  ['all', { bodies: [1], run: quantified(false) }],
  ['exists', { bodies: [1], run: quantified(true) }],
  ['exists_one', { bodies: [1], run: existsOne }],
  [
    'filter',
    { bodies: [1], run: (items, [keep = yes], at) => gather(items, { keep, make: null }, at) },
  ],
  [
    'map',
    {
      bodies: [1, 2],
      run: (items, [first = yes, second], at) =>
        second === undefined
          ? gather(items, { keep: yes, make: first }, at)
          : gather(items, { keep: first, make: second }, at),
    },
  ],
])
