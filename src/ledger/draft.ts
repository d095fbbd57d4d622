// The part of a record that is known before the store places it in the chain.

import type { Call, Client } from '../call.ts'
import { canonical } from '../canonical.ts'
import type { Facts } from '../decision.ts'
import { type Draft, emptyDraft } from './entry.ts'

/** A draft that says nothing yet but who asked, when and under which policy. `ts`: microseconds since 1970. */
export const blankDraft = (
  client: Client,
  { ts, policy }: { readonly ts: number; readonly policy: string },
): Draft => ({
  ...emptyDraft('call', ts),
  client: client.name,
  profile: client.profile,
  identity: client.identity,
  policy,
})

/** The draft of a call: what it asked, over which arguments, on which facts. `name` is the name as the
 *  client sent it; `more.upstream` and `more.target` say where it leads, `more.attributes` what the client has. */
export const callDraft = (
  call: Call,
  known: {
    readonly args: { readonly digest: string; readonly bytes: number }
    readonly facts: Facts | null
    readonly key: string | null
    readonly blank: Draft
  },
): Draft => ({
  ...known.blank,
  ts: call.receivedUs,
  request_id: known.key ?? 'missing',
  method: call.method,
  // A task's name is a token of ours: no token is in the log.
  name: isOfTask(call) ? (call.target?.name ?? '') : call.asked,
  transport: call.transport,
  args_digest: known.args.digest,
  args_bytes: known.args.bytes,
  trace: call.trace,
  facts:
    known.facts === null
      ? null
      : { definition: known.facts.definition?.hash ?? null, pin: known.facts.pin },
  more: whither(call),
})

const isOfTask = ({ method }: Call): boolean => method.startsWith('tasks/')

/** The target where the asked name alone does not tell it, and the attributes that rules may have read. */
function whither(call: Call): Draft['more'] {
  const { asked, target, client } = call
  const { attributes } = client
  const told =
    Object.keys(attributes).length === 0 ? {} : { attributes: canonical({ ...attributes }) }
  if (target === null) return told
  const { upstream, name } = target
  if (isOfTask(call)) return { ...told, upstream, task_operation: call.task?.operation ?? '' }
  return asked === name ? { ...told, upstream } : { ...told, upstream, target: name }
}
