// The proof, inside one process, that a call gate let this very call through.

import { AsyncLocalStorage } from 'node:async_hooks'

/** Good for one run of one tool's callback behind one gate. */
export type Pass = {
  readonly gate: object
  readonly tool: string
  spent: boolean
}

const passes = new AsyncLocalStorage<Pass>()

/** Runs `call` with a pass for `tool`. */
export const withPass = <T>(gate: object, tool: string, call: () => T): T =>
  passes.run({ gate, tool, spent: false }, call)

/** True once a pass: when this code runs under a call of `tool` that `gate` let through and no callback has
 *  run on it yet. A callback that calls another tool's callback, or itself again, has none. */
export function takePass(gate: object, tool: string): boolean {
  const pass = passes.getStore()
  if (pass === undefined || pass.spent || pass.gate !== gate || pass.tool !== tool) return false
  pass.spent = true
  return true
}
