// Clients beside the first one: with a token of their own, and answering what servers ask.

import assert from 'node:assert/strict'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'

import { mint } from '../../src/identity/tokens.ts'
import { addClientIn } from '../../src/store/reader.ts'
import type { Gate } from './harness.ts'
import type { Headers } from './http-wire.ts'
import { type Bag, type Message, PATIENCE, request, type Wire } from './wire.ts'

/** Adds clients to a running gateway, profiles by name, and gives the headers of each once it is let in. */
export async function admitted(
  gate: Gate,
  profiles: Readonly<Record<string, string>>,
  path = '/mcp',
): Promise<Readonly<Record<string, Headers>>> {
  const all: Record<string, Headers> = {}
  for (const [name, profile] of Object.entries(profiles)) {
    const { token, digest } = mint()
    const rest = { person: false, attributes: {}, limit: null, expiresUs: null }
    assert.equal(
      addClientIn(join(gate.folder, 'state'), { name, profile, digest, ...rest }),
      'added',
    )
    all[name] = { authorization: `Bearer ${token}` }
  }
  const end = Date.now() + PATIENCE
  for (const headers of Object.values(all)) {
    const body = JSON.stringify(request('modern', 1, 'server/discover'))
    const knock = () => gate.client({ era: 'modern', path }).exchange({ body, headers })
    while ((await knock()).status === 401) {
      assert.ok(Date.now() < end, 'a client that was added is not let in')
      await sleep(50)
    }
  }
  return all
}

/** Answers each thing that is asked of a client with what `respond` gives; undefined: not at all. Gives what
 *  was asked, as it comes. */
export function answering(
  wire: Wire,
  respond: (asked: Message) => Bag | undefined,
): readonly Message[] {
  const asked: Message[] = []
  wire.incoming.listeners.add((line) => {
    const message = JSON.parse(line) as Message
    if (message.method === undefined || message.id === undefined) return
    asked.push(message)
    const response = respond(message)
    if (response === undefined) return
    void wire.post({ jsonrpc: '2.0', id: message.id, ...response })
  })
  return asked
}
