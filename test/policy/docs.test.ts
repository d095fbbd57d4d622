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

function lineOf(line: string): Line {
  const [, who = '', attributes = '', kind = '', name = '', args = '', wanted = ''] =
    /^(\w+)(?:\[(.*?)\])? (?:(resource|prompt|new|changed):)?(\S+) (.*) => (.+)$/.exec(line) ?? []
  assert.notEqual(wanted, '', `cannot read: ${line}`)
  const by: Client = client(
    who,
    Object.fromEntries(attributes === '' ? [] : [attributes.split('=')]),
  )
  const slash = name.indexOf('/')
  const [upstream, tool] =
    kind === 'resource' ? ['notes', name] : [name.slice(0, slash), name.slice(slash + 1)]
  const base = toolCall(by, tool, args)
  if (kind === 'resource' || kind === 'prompt') {
    const method = kind === 'resource' ? 'resources/read' : 'prompts/get'
    return {
      call: { ...base, method, target: { kind, upstream, name: tool } },
      facts: { definition: null, pin: 'none' },
      wanted,
    }
  }
  const pin = kind === 'new' || kind === 'changed' ? kind : 'approved'
  return {
    call: { ...base, target: { kind: 'tool', upstream, name: tool } },
    facts: { ...approved(), pin },
    wanted,
  }
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
