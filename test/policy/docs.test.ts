// docs/policy.md is true: each file on the page loads, and each line below it is decided as it says.

import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'

import type { Call, Client } from '../../src/call.ts'
import type { Facts } from '../../src/decision.ts'
import { decide } from '../../src/policy/decide.ts'
import { DEFAULT_LIMITS, LIMIT_NAMES } from '../../src/policy/limits.ts'
import { approved, client, codes, configOf, toolCall } from './ground.ts'

const page = readFileSync(new URL('../../docs/policy.md', import.meta.url), 'utf8')
const sections = page.split(/^## /m).slice(1)
const BLOCKS = /```yaml\n([\s\S]*?)```\n(?:\n```calls\n([\s\S]*?)```)?/g

type Line = { readonly call: Call; readonly facts: Facts; readonly wanted: string }

const FORM =
  /^(?<who>\w+)(?:\[(?<attributes>.*?)\])? (?:(?<kind>resource|prompt|new|changed):)?(?<name>\S+) (?<args>.*) => (?<wanted>.+)$/

function lineOf(line: string): Line {
  const groups = FORM.exec(line)?.groups
  assert.ok(groups !== undefined, `cannot read: ${line}`)
  const part = (name: string): string => groups[name] ?? ''
  const attributes = part('attributes') === '' ? [] : [part('attributes').split('=')]
  const by: Client = client(part('who'), Object.fromEntries(attributes))
  const wanted = part('wanted')
  const base = toolCall(by, '', part('args'))
  return { ...placed(base, part('kind'), part('name')), wanted }
}

function placed(base: Call, kind: string, name: string): Omit<Line, 'wanted'> {
  const facts: Facts = { definition: null, pin: 'none' }
  if (kind === 'resource') {
    const target = { kind, upstream: 'notes', name } as const
    return { call: { ...base, method: 'resources/read', target }, facts }
  }
  const slash = name.indexOf('/')
  const at = { upstream: name.slice(0, slash), name: name.slice(slash + 1) }
  if (kind === 'prompt') {
    return { call: { ...base, method: 'prompts/get', target: { kind, ...at } }, facts }
  }
  const pin = kind === 'new' || kind === 'changed' ? kind : 'approved'
  return { call: { ...base, target: { kind: 'tool', ...at } }, facts: { ...approved(), pin } }
}

let lines = 0
for (const section of sections) {
  const title = section.slice(0, section.indexOf('\n'))
  for (const [, text = '', calls = ''] of section.matchAll(BLOCKS)) {
    test(`the page is true under "${title}"`, async () => {
      const { policy } = await configOf(text)
      for (const line of calls.split('\n').filter((one) => one !== '')) {
        const { call, facts, wanted } = lineOf(line)
        assert.equal(codes(decide(call, policy, facts)), wanted, line)
        lines++
      }
    })
  }
}

test('the page holds examples at all', () => {
  assert.ok(lines >= 50, `${lines} lines were run`)
})

test('the settings on the page are all limits and the defaults', async () => {
  const [, text = ''] = /## Settings\n\n```yaml\n([\s\S]*?)```/.exec(page) ?? []
  const config = await configOf(text)
  assert.deepEqual(config.limits, DEFAULT_LIMITS)
  for (const name of Object.keys(LIMIT_NAMES)) assert.match(text, new RegExp(`^  ${name}: `, 'm'))
})
