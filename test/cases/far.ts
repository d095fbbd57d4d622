// The real gateway in front of servers over HTTP that live in the test.

import assert from 'node:assert/strict'
import type { TestContext } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'

import { type Gate, type Setup, startGate } from './harness.ts'
import { type Bag, textOf } from './wire.ts'

/** Starts a gateway whose upstreams are reached by these addresses. `more` are further keys of each. */
export const startFar = (
  t: TestContext,
  urls: Readonly<Record<string, string>>,
  setup: Setup & { readonly more?: Bag },
): Promise<Gate> => {
  const { more = {}, ...rest } = setup
  const upstreams = Object.fromEntries(
    Object.entries(urls).map(([name, url]) => [name, { url, ...more }] as const),
  )
  const allow = Object.keys(urls).flatMap((name) =>
    ['echo', 'get', 'put'].map((tool) => `${name}/${tool}`),
  )
  return startGate(t, { allow, ...rest, config: { upstreams, ...rest.config } })
}

/** Calls again and again, one after the other, until the call succeeds. */
export async function succeeds(gate: Gate, tool: string, withinMs: number): Promise<string> {
  const end = Date.now() + withinMs
  for (;;) {
    const answer = await gate.call(tool, {})
    if (answer.error === undefined && answer.result?.isError !== true) return textOf(answer)
    assert.ok(Date.now() < end, `${tool} fails for ${withinMs} ms: ${JSON.stringify(answer)}`)
    await sleep(50)
  }
}
