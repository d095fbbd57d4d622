// What would let a name pass that a configuration file refused: the line to write, tried before it is told.

import type { Client, Target } from '../call.ts'
import { canonical } from '../canonical.ts'
import type { Failure } from '../decision.ts'
import { object } from '../json.ts'
import { loadPolicy } from '../policy/config.ts'
import { admits } from '../policy/decide.ts'
import { type Addition, type Edit, edited } from '../policy/edit.ts'
import { nameOf } from '../policy/judge.ts'
import { listed } from '../policy/pattern.ts'
import { faultLine } from '../policy/position.ts'
import type { PolicySet } from '../policy/set.ts'
import { readsArguments } from '../policy/trace.ts'
import { lookup } from './place.ts'
import {
  changedNote,
  command,
  explainCommand,
  fileName,
  type Ground,
  type Line,
  placeOf,
  whichFile,
  words,
} from './policy-ground.ts'
import { shortSteps } from './policy-short.ts'

/** What would let the name of this target pass. */
export function nameSteps(
  ground: Ground,
  failure: Failure,
  target: Target,
): readonly Line[] | Promise<readonly Line[]> {
  const { origin, set, call } = ground
  const name = target.kind === 'resource' ? target.name : nameOf(set, target)
  const where = placeOf(ground, failure.rule)
  const { profile } = call.client
  if (failure.rule.includes('/deny/')) {
    return [
      words(`${name} is refused by the list \`deny\` of profile \`${profile}\` (${where})`),
      words('no command lifts that: whoever answers for the policy may remove the entry'),
    ]
  }
  if (origin.kind === 'short') return shortSteps(ground, origin.flags, target)
  return fileSteps(ground, target, { name, where })
}

async function fileSteps(
  ground: Ground,
  target: Target,
  { name, where }: { readonly name: string; readonly where: string },
): Promise<readonly Line[]> {
  const { call, set } = ground
  const { profile } = call.client
  const list = { tool: 'allow', resource: 'resources', prompt: 'prompts' }[target.kind]
  const additions = additionsFor(set, call.client, target)
  const what = additions.map((one) => (one.kind === 'entry' ? list : 'approve'))
  const start = words(
    what.includes(list)
      ? `to allow it, add ${name} to \`${list}\` of profile \`${profile}\` (${where})`
      : `to allow it, say \`approve: { ${name}: none }\` in profile \`${profile}\` (${where})`,
  )
  const tried = await tryAdditions(ground, target, additions)
  if (tried.kind === 'refused') {
    return [
      words(`${name} is not in \`${list}\` of profile \`${profile}\` (${where})`),
      words(`no command lifts that: with it there the program would not start: ${tried.why}`),
    ]
  }
  const hint = what.includes('approve')
    ? [
        words(
          `it is destructive: its exact name and \`approve: { ${name}: none }\` are both needed`,
        ),
      ]
    : []
  const edits = tried.kind === 'edits' ? tried.edits.flatMap(editLines) : []
  return [start, ...hint, ...edits, ...changedNote(ground), ...proof(ground, target, tried)]
}

/** What must be written so that the name is allowed: its entry, and for a destructive tool that nobody
 *  approves it. */
function additionsFor(set: PolicySet, client: Client, target: Target): readonly Addition[] {
  const profile = set.profiles.get(client.profile)
  if (profile === undefined) return []
  const { path } = profile
  const name = target.kind === 'resource' ? target.name : nameOf(set, target)
  // Version 1 has names without a server in it, also where a configuration names it.
  const value = path === '' ? target.name : name
  if (target.kind !== 'tool') {
    return [{ kind: 'entry', path: `${path}/${target.kind}s`, value }]
  }
  const entry: Addition = { kind: 'entry', path: profile.allowPath, value }
  const named = listed(profile.allow, name)?.by === 'name'
  if (set.tools.get(name)?.effect !== 'destructive') return [entry]
  const approve: readonly Addition[] = profile.exempt.has(name)
    ? []
    : [{ kind: 'member', path: `${path}/approve`, key: name, value: 'none' }]
  return named ? approve : [entry, ...approve]
}

type Placed = { readonly file: string; readonly edit: Edit }
/** by hand: the text is written in a way that is left to a person. refused: a configuration with the
 *  additions is refused, `must_deny` above all. */
type Tried =
  | { readonly kind: 'edits'; readonly edits: readonly Placed[]; readonly set: PolicySet }
  | { readonly kind: 'by hand' }
  | { readonly kind: 'refused'; readonly why: string }

async function tryAdditions(
  ground: Ground,
  target: Target,
  additions: readonly Addition[],
): Promise<Tried> {
  const { origin, set, call, io } = ground
  const texts = origin.sources.map(({ text }) => text)
  const edits: Placed[] = []
  for (const addition of additions) {
    const name = fileName(set.place(addition.path).file, origin.sources)
    const index = origin.sources.findIndex(({ file }) => file === name)
    const edit = index < 0 ? null : edited(texts[index] ?? '', addition)
    if (edit === null) return { kind: 'by hand' }
    texts[index] = edit.text
    edits.push({ file: name, edit })
  }
  const loaded = await loadPolicy(
    texts.length === 1 ? (texts[0] ?? '') : canonical(texts),
    lookup(io),
  )
  if (loaded.kind === 'faults') {
    const fault = loaded.faults.find(({ level }) => level === 'error')
    if (fault === undefined) return { kind: 'by hand' }
    return {
      kind: 'refused',
      why: faultLine({ ...fault, file: fileName(fault.file, origin.sources) }),
    }
  }
  if (admits(loaded.policy, call.client, target) !== null) return { kind: 'by hand' }
  return { kind: 'edits', edits, set: loaded.policy }
}

/** The line stands alone after `| `, so that its blanks are exact. */
const editLines = ({ file, edit: { line, how, shown } }: Placed): readonly Line[] => [
  words(
    how === 'changed'
      ? `line ${line} of ${file} must read:`
      : `after line ${line} of ${file} write:`,
  ),
  words(`| ${shown}`),
]

/** The command that shows the edit to be right. */
function proof(ground: Ground, target: Target, tried: Tried): readonly Line[] {
  const { origin, call, facts } = ground
  if (origin.kind !== 'file' && origin.kind !== 'changed') return whichFile(ground)
  const set = tried.kind === 'edits' ? tried.set : ground.set
  const definition = { hash: 'any', value: object({}) }
  const reads = readsArguments(call, set, { ...facts, definition, pin: 'approved' })
  const { argv, note } = explainCommand(ground, target, reads)
  return [words(`then this proves it, exit status 0${note}:`), command(argv)]
}
