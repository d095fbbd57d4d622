// Expressions: CEL text to a function of this room, with a step budget and positions for every fault.

import type { ASTNode } from '@marcbachmann/cel-js'

import { FUNCTIONS, MACROS, type Macro } from './cel-call.ts'
import { BINARY, negate } from './cel-operator.ts'
import {
  type Budget,
  type Code,
  double,
  failed,
  type Frame,
  isDictionary,
  isFailed,
  lift,
  memberOf,
  type Scope,
  type Value,
} from './cel-value.ts'
import { bare } from './value.ts'

/** Ceilings of expressions. `steps`: of one evaluation, about 50 ns each. `elements`: of one list or map
 *  that a macro goes through. `nesting`: macros inside each other; 2 = at most one nested. */
export const CEL_LIMITS: {
  readonly characters: number
  readonly depth: number
  readonly nodes: number
  readonly steps: number
  readonly elements: number
  readonly nesting: number
} = { characters: 4_000, depth: 50, nodes: 2_000, steps: 100_000, elements: 10_000, nesting: 2 }

/** A compiled expression. `reads` holds the first path below `args` that the text names, as a JSON
 *  Pointer, or null. `run` never throws; past the budget its result is an error. */
export type Expression = {
  readonly text: string
  readonly reads: string | null
  readonly run: (scope: Scope) => Value
}

/** A fault of an expression; `offset` counts UTF-16 units from its start. */
export type CelFault = { readonly offset: number; readonly message: string }

/** The parser of the library, handed in so that it is loaded only where a policy has expressions. */
export type CelParse = (text: string) => ASTNode

/** State of one compilation. `locals`: names of macro variables, outermost first. */
type Scan = {
  readonly locals: readonly string[]
  readonly found: { reads: string | null; fault: CelFault | null }
}

/** Compiles an expression over `args`, `client` and `facts`. Whatever this build does not know is a
 *  fault: other names, other functions, patterns that are not literals, ints beyond 2^53-1. */
export function compile(text: string, parse: CelParse): Expression | CelFault {
  if (text.length > CEL_LIMITS.characters) {
    return { offset: 0, message: `longer than ${CEL_LIMITS.characters} characters` }
  }
  try {
    const found: Scan['found'] = { reads: null, fault: null }
    const code = translate(parse(text), { locals: [], found })
    if (found.fault !== null) return found.fault
    return { text, reads: found.reads, run: (scope) => evaluate(code, scope) }
  } catch (error) {
    return faultOf(error)
  }
}

// The one place where what the parser throws becomes a value.
function faultOf(error: unknown): CelFault {
  if (error instanceof RangeError) return { offset: 0, message: 'the expression nests too deeply' }
  const range: unknown = Reflect.get(Object(error), 'range')
  const start: unknown = Reflect.get(Object(range), 'start')
  const summary: unknown = Reflect.get(Object(error), 'summary')
  return {
    offset: typeof start === 'number' ? start : 0,
    message: typeof summary === 'string' ? summary : 'the expression cannot be read',
  }
}

function evaluate(code: Code, scope: Scope): Value {
  const frame: Frame = { scope, locals: [], steps: CEL_LIMITS.steps }
  const value = code(frame)
  return frame.steps < 0 ? failed('over budget') : value
}

/** Refuses the expression at one of its nodes; the first such fault is told. */
function refuse(scan: Scan, node: ASTNode, message: string): Code {
  scan.found.fault ??= { offset: node.start, message }
  return () => failed(message)
}

/** The function of one node. Each run of it costs a step. */
function translate(node: ASTNode, scan: Scan): Code {
  const code = codeOf(node, scan)
  return (frame) => (--frame.steps < 0 ? failed('over budget') : code(frame))
}

function codeOf(node: ASTNode, scan: Scan): Code {
  const binary = BINARY.get(node.op)
  if (binary !== undefined) return binaryCode(node, binary, scan)
  switch (node.op) {
    case 'value':
      return literal(node, scan)
    case 'id':
      return variable(node, scan)
    case '.':
      return member(node, scan)
    case 'call':
      return call(node, { name: node.args[0], receiver: null, args: node.args[1] }, scan)
    case 'rcall':
      return call(node, { name: node.args[0], receiver: node.args[1], args: node.args[2] }, scan)
    default:
      return composed(node, scan)
  }
}

function composed(node: ASTNode, scan: Scan): Code {
  switch (node.op) {
    case '-_':
      return negation(node.args, scan)
    case '!_':
      return not(translate(node.args, scan))
    case '&&':
    case '||':
      return logic(node.args, scan, node.op === '||')
    case '?:':
      return choice(node.args, scan)
    case 'list':
      return listCode(node.args, scan)
    case 'map':
      return mapCode(node.args, scan)
    default:
      return refuse(scan, node, `\`${node.op}\` is not known here`)
  }
}

function literal(node: ASTNode & { readonly op: 'value' }, scan: Scan): Code {
  const value = node.args
  if (typeof value === 'bigint') return integer(node, value, scan)
  if (typeof value === 'number') {
    const made = double(value)
    return () => made
  }
  if (value === null || typeof value === 'string' || typeof value === 'boolean') return () => value
  return refuse(scan, node, 'bytes and unsigned integers are not known here')
}

function integer(node: ASTNode, value: bigint, scan: Scan): Code {
  const number = Number(value)
  if (!Number.isSafeInteger(number)) {
    return refuse(
      scan,
      node,
      'an integer beyond 2^53-1 is not known here; compare such numbers as strings',
    )
  }
  return () => number
}

function negation(operand: ASTNode, scan: Scan): Code {
  const code = translate(operand, scan)
  return (frame) => negate(code(frame))
}

const ROOTS: ReadonlySet<string> = new Set(['args', 'client', 'facts'])

function variable(node: ASTNode & { readonly op: 'id' }, scan: Scan): Code {
  const name = node.args
  const local = scan.locals.indexOf(name)
  if (local !== -1) return (frame) => frame.locals[local] ?? null
  if (name === 'args') {
    scan.found.reads ??= ''
    return (frame) => lift(frame.scope.args)
  }
  if (name === 'client') return (frame) => lift(frame.scope.client)
  if (name === 'facts') return (frame) => lift(frame.scope.facts)
  return refuse(scan, node, `\`${name}\` is not known here; there are args, client and facts`)
}

function member(node: ASTNode & { readonly op: '.' }, scan: Scan): Code {
  const [operand, key] = node.args
  note(node, scan)
  const code = translate(operand, scan)
  return (frame) => memberOf(code(frame), key)
}

/** Notes `args.a.b` as `/a/b`, once: what a failed rule is said to be about. */
function note(node: ASTNode, scan: Scan): void {
  if (scan.found.reads !== null) return
  let path = ''
  let at = node
  while (at.op === '.') {
    path = `/${at.args[1]}${path}`
    at = at.args[0]
  }
  if (at.op === 'id' && at.args === 'args' && !scan.locals.includes('args')) scan.found.reads = path
}

function binaryCode(
  node: ASTNode,
  apply: (a: Value, b: Value, budget: Budget) => Value,
  scan: Scan,
): Code {
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- what every operator of BINARY has
  const [left, right] = node.args as readonly [ASTNode, ASTNode]
  const a = translate(left, scan)
  const b = translate(right, scan)
  return (frame) => {
    const x = a(frame)
    if (isFailed(x)) return x
    const y = b(frame)
    return isFailed(y) ? y : apply(x, y, frame)
  }
}

const not =
  (code: Code): Code =>
  (frame) => {
    const value = code(frame)
    if (typeof value === 'boolean') return !value
    return isFailed(value) ? value : failed('no such overload: ! needs true or false')
  }

/** `||` when `ends` is true, `&&` when it is false: the value that ends it wins over an error. */
function logic(args: readonly [ASTNode, ASTNode], scan: Scan, ends: boolean): Code {
  const left = translate(args[0], scan)
  const right = translate(args[1], scan)
  return (frame) => {
    const a = left(frame)
    if (a === ends) return ends
    const b = right(frame)
    if (b === ends) return ends
    if (typeof a === 'boolean' && typeof b === 'boolean') return !ends
    if (isFailed(a)) return a
    return isFailed(b) ? b : failed('no such overload: && and || need true or false')
  }
}

function choice(args: readonly [ASTNode, ASTNode, ASTNode], scan: Scan): Code {
  const [test, yes, no] = [
    translate(args[0], scan),
    translate(args[1], scan),
    translate(args[2], scan),
  ]
  return (frame) => {
    const value = test(frame)
    if (typeof value === 'boolean') return value ? yes(frame) : no(frame)
    return isFailed(value) ? value : failed('no such overload: ? needs true or false')
  }
}

function listCode(args: readonly ASTNode[], scan: Scan): Code {
  const items = args.map((one) => translate(one, scan))
  return (frame) => {
    const made: Value[] = []
    for (const item of items) {
      const value = item(frame)
      if (isFailed(value)) return value
      made.push(value)
    }
    return made
  }
}

function mapCode(args: readonly (readonly [ASTNode, ASTNode])[], scan: Scan): Code {
  const entries = args.map(([key, value]) => {
    const name = key.op === 'value' && typeof key.args === 'string' ? key.args : null
    if (name === null) refuse(scan, key, 'the key of a map is a literal string here')
    return [name ?? '', translate(value, scan)] as const
  })
  return (frame) => {
    const made = bare<Value>()
    for (const [key, code] of entries) {
      const value = code(frame)
      if (isFailed(value)) return value
      made[key] = value
    }
    return made
  }
}

type Named = {
  readonly name: string
  readonly receiver: ASTNode | null
  readonly args: readonly ASTNode[]
}

function call(node: ASTNode, { name, receiver, args }: Named, scan: Scan): Code {
  if (name === 'has' && receiver === null) return has(node, args, scan)
  const macro = MACROS.get(name)
  if (macro !== undefined && receiver !== null)
    return macroCode(node, { macro, receiver, args }, scan)
  const known = FUNCTIONS.get(name)
  const operands = receiver === null ? args : [receiver, ...args]
  if (known === undefined || (receiver === null && !known.plain)) {
    return refuse(scan, node, `the function \`${name}\` is not known here`)
  }
  if (operands.length !== known.operands)
    return refuse(scan, node, `\`${name}\` takes other arguments`)
  const apply = known.build(operands)
  if (typeof apply === 'string') return refuse(scan, operands.at(-1) ?? node, apply)
  const codes = operands.map((one) => translate(one, scan))
  return (frame) => {
    const values: Value[] = []
    for (const code of codes) {
      const value = code(frame)
      if (isFailed(value)) return value
      values.push(value)
    }
    return apply(values[0] ?? null, values[1] ?? null, frame)
  }
}

function has(node: ASTNode, args: readonly ASTNode[], scan: Scan): Code {
  const [field] = args
  if (args.length !== 1 || field?.op !== '.')
    return refuse(scan, node, 'has() takes one member, as has(args.a)')
  note(field, scan)
  const [operand, key] = field.args
  const code = translate(operand, scan)
  return (frame) => {
    const value = code(frame)
    if (isFailed(value)) return value
    return isDictionary(value) ? Object.hasOwn(value, key) : failed('no such overload: has()')
  }
}

function macroCode(
  node: ASTNode,
  { macro, receiver, args }: { macro: Macro; receiver: ASTNode; args: readonly ASTNode[] },
  scan: Scan,
): Code {
  const [variableNode, ...bodies] = args
  if (variableNode?.op !== 'id') return refuse(scan, node, 'the first argument is a variable')
  const name = variableNode.args
  if (ROOTS.has(name) || scan.locals.includes(name)) {
    return refuse(scan, variableNode, `\`${name}\` is taken; choose another name`)
  }
  if (scan.locals.length >= CEL_LIMITS.nesting) {
    return refuse(scan, node, 'at most one list may be gone through inside another')
  }
  if (!macro.bodies.includes(bodies.length)) return refuse(scan, node, 'this takes other arguments')
  const range = translate(receiver, scan)
  const inner = { ...scan, locals: [...scan.locals, name] }
  const codes = bodies.map((one) => translate(one, inner))
  const slot = scan.locals.length
  return (frame) => {
    const value = range(frame)
    if (isFailed(value)) return value
    const items = Array.isArray(value) ? value : isDictionary(value) ? Object.keys(value) : null
    if (items === null) return failed('no such overload: this needs a list or a map')
    if (items.length > CEL_LIMITS.elements) return failed('over budget: too many elements')
    return macro.run(items, codes, { frame, slot })
  }
}
