// Stage 1: the definition that a call stands on, and the pins that say whether it may.

import type { Client, Target } from '../call.ts'
import type { Facts } from '../decision.ts'
import { admits, advertise, firstUse, keyIn } from '../policy/decide.ts'
import type { PolicySet } from '../policy/set.ts'
import type { Listed, ListKind, Shown, Store } from '../ports.ts'
import type { Doors, Page } from './page.ts'

/** What was learned. `away`: the server cannot be asked, and the facts are those on which the ledger tells what
 *  it knows of the key; nothing may be sent on them. */
export type Learned = { readonly facts: Facts; readonly away: boolean }

const NOTHING: Learned = { facts: { definition: null, pin: 'none' }, away: false }

/** What the decision needs beside the call; a new definition has been pinned when this resolves. A name that is
 *  not allowed never makes us ask the server: neither its list nor our timing tells a hidden name from an
 *  unknown one. */
export async function learn(page: Page): Promise<Learned | 'down'> {
  const { call, set, doors } = page
  const { target, client } = call
  if (call.method !== 'tools/call' || target === null) return NOTHING
  if (admits(set, client, target) !== null) return NOTHING
  const { upstream, name } = target
  // Whoever repeats a key does not wait for a server that is not needed.
  const isUp = doors.upstreams.isUp(upstream, client.name)
  const early = isUp ? null : await recalled(page, target)
  if (early !== null) return early
  const definition = await doors.upstreams.definition(upstream, name, client.name)
  if (definition === 'down') return (await recalled(page, target)) ?? 'down'
  if (definition === 'absent') return NOTHING
  const pin = await settle({ client, set, doors }, upstream, definition)
  return { facts: { definition, pin }, away: false }
}

/** What the ledger tells of this key without its server; null where it would have the call sent. */
async function recalled(page: Page, { upstream, name }: Target): Promise<Learned | null> {
  const { call, set, args, doors, round } = page
  const key = round.operation === null ? keyIn(set, call) : null
  if (key === null) return null
  const asked = { client: call.client.name, upstream, tool: name, ...key, args }
  const kept = await doors.store.recall({ ...asked, nowUs: doors.clock.nowUs() })
  return kept === null ? null : { facts: { definition: kept, pin: 'approved' }, away: true }
}

/** Who is shown something, under which policy. */
export type Desk = { readonly client: Client; readonly set: PolicySet; readonly doors: Doors }

/** The items of one upstream's list that this client may see, each as it is advertised to it; what is new has
 *  been pinned when this resolves. */
export async function visible(
  desk: Desk,
  kind: ListKind,
  upstream: string,
  listed: Listed,
): Promise<readonly Shown[]> {
  const { client, set, doors } = desk
  const target = kind === 'tools' ? 'tool' : kind === 'prompts' ? 'prompt' : 'resource'
  const allowed = listed.items.filter(
    ({ name }) => admits(set, client, { kind: target, upstream, name }) === null,
  )
  if (kind !== 'tools') return allowed.map((definition) => ({ upstream, definition }))
  const pins = allowed.map((definition) => pinOf(desk, upstream, definition))
  const news = pins.flatMap((one) => one.news ?? [])
  if (news.length > 0) await doors.store.pin(news, client.name)
  const shown: Shown[] = []
  for (const [at, definition] of allowed.entries()) {
    const { pin, news: fresh } = pins[at] ?? { pin: 'none', news: null }
    if ((pin !== 'approved' && pin !== 'new') || (fresh !== null && !holds(desk, fresh))) continue
    const value = advertise(set, client, upstream, definition)
    shown.push({ upstream, definition: { ...definition, value } })
  }
  return shown
}

/** The pin's state for this definition, after remembering it when it is new or changed. */
async function settle(
  desk: Desk,
  upstream: string,
  definition: Shown['definition'],
): Promise<Facts['pin']> {
  const { pin, news } = pinOf(desk, upstream, definition)
  if (news === null) return pin
  await desk.doors.store.pin([news], desk.client.name)
  return holds(desk, news) ? pin : 'changed'
}

type News = Parameters<Store['pin']>[0][number]

// What was known may be a second old: another process may have pinned another definition meanwhile.
const holds = ({ doors }: Desk, { tool, definition, state }: News): boolean =>
  state === 'waits' || doors.store.pins().get(tool)?.hash === definition.hash

/** What is known of a definition, and what of it the ledger does not know yet. */
function pinOf(
  { client, set, doors }: Desk,
  upstream: string,
  definition: Shown['definition'],
): { readonly pin: Facts['pin']; readonly news: News | null } {
  const tool = `${upstream}/${definition.name}`
  const known = doors.store.pins().get(tool)
  if (known?.hash === definition.hash) return { pin: 'approved', news: null }
  const state = known === undefined ? firstUse(set, client, tool) : 'waits'
  const news = known?.waiting === definition.hash ? null : { tool, definition, state }
  if (state === 'approved') return { pin: 'new', news }
  return { pin: known === undefined || known.hash === null ? 'waits' : 'changed', news }
}
