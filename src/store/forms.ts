// Records on their way to the writer's thread: what many of them share goes over once, as a form.

import type { Draft } from '../ledger/entry.ts'
import type { Filling, Request } from './wire.ts'

type Recording = Extract<Request, { readonly kind: 'record' }>

/** Forms kept at both ends; each new one beyond them takes the place of the oldest. */
const MAX_FORMS = 64

/** The sender's end. */
export type FormsOut = {
  /** The text of a record: filled into its form, or whole where that form is new. */
  readonly text: (recording: Recording) => string
}

/** The receiver's end; it must get every text of the other end, in order. */
export type FormsIn = {
  /** The request that an element of a batch is. */
  readonly request: (element: Request | Filling) => Request
}

/** A sender that has sent nothing yet. */
export function formsOut(): FormsOut {
  const forms: Recording[] = []
  let next = 0
  let last = 0
  const find = (recording: Recording): number => {
    const known = forms[last]
    if (known !== undefined && fits(known, recording)) return last
    return forms.findIndex((one) => fits(one, recording))
  }
  return {
    text(recording) {
      const found = find(recording)
      if (found < 0) {
        const form = next
        next = (next + 1) % MAX_FORMS
        forms[form] = recording
        last = form
        return JSON.stringify({ ...recording, form })
      }
      last = found
      return JSON.stringify(filling(recording, found))
    },
  }
}

/** A receiver that has got nothing yet. */
export function formsIn(): FormsIn {
  const forms: Recording[] = []
  return {
    request(element) {
      if (isFilling(element)) return filled(forms[element[1]], element)
      if (element.kind === 'record' && element.form !== undefined) forms[element.form] = element
      return element
    },
  }
}

const isFilling = (element: Request | Filling): element is Filling => Array.isArray(element)

function filling({ id, draft }: Recording, form: number): Filling {
  return [
    id,
    form,
    draft.ts,
    draft.request_id,
    draft.outcome,
    draft.code,
    draft.args_digest,
    draft.args_bytes,
    draft.result_digest,
    draft.result_bytes,
    draft.duration_us,
    draft.trace,
  ]
}

function filled(form: Recording | undefined, element: Filling): Recording {
  if (form === undefined) throw new TypeError('a record came without its form')
  const [id, , ts, request_id, outcome, code, ...digests] = element
  const [args_digest, args_bytes, result_digest, result_bytes, duration_us, trace] = digests
  const draft: Draft = {
    ...form.draft,
    ts,
    request_id,
    outcome,
    code,
    args_digest,
    args_bytes,
    result_digest,
    result_bytes,
    duration_us,
    trace,
  }
  return { id, kind: 'record', segment: form.segment, draft }
}

/** True when the two differ in nothing but what a filling says. A member that is added to `Draft` must be
 *  compared here or said there; the test counts them. */
function fits(form: Recording, { draft, segment }: Recording): boolean {
  const of = form.draft
  return (
    form.segment === segment &&
    sameWho(of, draft) &&
    sameWhat(of, draft) &&
    sameFacts(of.facts, draft.facts) &&
    sameMembers(of.more, draft.more)
  )
}

const sameWho = (a: Draft, b: Draft): boolean =>
  a.client === b.client &&
  a.profile === b.profile &&
  a.identity === b.identity &&
  a.transport === b.transport &&
  a.policy === b.policy

const sameWhat = (a: Draft, b: Draft): boolean =>
  a.kind === b.kind &&
  a.method === b.method &&
  a.name === b.name &&
  a.decision === b.decision &&
  a.verdict === b.verdict &&
  a.rule === b.rule &&
  a.failures.length === 0 &&
  b.failures.length === 0

const sameFacts = (a: Draft['facts'], b: Draft['facts']): boolean =>
  a === b || (a !== null && b !== null && sameMembers(a, b))

function sameMembers(a: Members, b: Members): boolean {
  const keys = Object.keys(a)
  return keys.length === Object.keys(b).length && keys.every((key) => a[key] === b[key])
}

type Members = { readonly [key: string]: string | number | boolean | null }
