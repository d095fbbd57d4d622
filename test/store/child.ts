// A process with a store of its own, for tests of several processes, kills and faults. Driven by lines on
// stdin, one command each, or by ECLUSA_SCRIPT with the same commands; answers with lines on stdout.

import { writeSync } from 'node:fs'
import { createInterface } from 'node:readline'

import { exitStatus, Fault } from '../../src/fault.ts'
import type { Store, Ticket } from '../../src/ports.ts'
import { openSqlite } from '../../src/store/sqlite.ts'
import { closing, draft, intent, optionsFor, random } from './scene.ts'

// Written at once: a line that was printed before a kill was true before it.
const print = (line: string): void => {
  for (;;) {
    try {
      writeSync(1, `${line}\n`)
      return
    } catch (error) {
      // The pipe is full: its reader is behind.
      if ((error as { code?: string }).code !== 'EAGAIN') throw error
    }
  }
}
const codeOf = (error: unknown): string => (error instanceof Fault ? error.code : String(error))
const tickets = new Map<string, Ticket>()

const options = optionsFor(process.argv[2] ?? '', {
  say: (line) => print(`say ${line}`),
  onFatal: (fault) => {
    print(`fatal ${fault.code}`)
    process.exit(exitStatus(fault.code))
  },
})

type Command = (store: Store, ...args: string[]) => Promise<void>

const COMMANDS: Readonly<Record<string, Command>> = {
  async append(store, name = '') {
    await store.append(draft({ name }))
    print(`appended ${name}`)
  },
  async open(store, key = '', text = '') {
    const wish = { args: store.digest(text) }
    const opened = await store.open(intent(store, key, wish))
    if (opened.kind === 'ticket') tickets.set(key, opened.ticket)
    print(`opened ${key} ${opened.kind}`)
  },
  async close(store, key = '', outcome = 'committed') {
    const ticket = tickets.get(key)
    if (ticket === undefined) throw new Error('no ticket')
    const answer = outcome === 'unknown' ? { answer: null, store: null } : {}
    await store.close(ticket, closing(store, { ...answer, outcome: outcome as 'committed' }))
    print(`closed ${key}`)
  },
  async ask(store, key = '', awaits = 'input') {
    const ticket = tickets.get(key)
    if (ticket === undefined) throw new Error('no ticket')
    const wait = {
      outcome: 'awaiting',
      awaits: awaits as 'input',
      answer: null,
      store: null,
    } as const
    await store.close(ticket, closing(store, wait))
    print(`asked ${key} ${ticket.operation}`)
  },
  async next(store, key = '', operation = '', round = '2') {
    const wish = intent(store, key, {
      args: store.digest('x'),
      continues: operation,
      round: Number(round),
    })
    const later = { ...wish.draft, more: { round: Number(round) } }
    const opened = await store.open({ ...wish, draft: later })
    if (opened.kind === 'ticket') tickets.set(key, opened.ticket)
    print(`next ${key} ${opened.kind}`)
  },
  async seal(store) {
    print(`sealed ${store.seal('state', 'secret', Date.now() * 1_000 + 60_000_000)}`)
  },
  async unseal(store, token = '') {
    print(`unsealed ${store.unseal('state', token, Date.now() * 1_000) ?? 'nothing'}`)
  },
  async flat(store, ms = '', inFlight = '') {
    const end = performance.now() + Number(ms)
    let count = 0
    let longest = 0
    const write = async (): Promise<void> => {
      for (;;) {
        const start = performance.now()
        if (start > end) return
        await store.append(draft())
        longest = Math.max(longest, performance.now() - start)
        count++
      }
    }
    await Promise.all(Array.from({ length: Number(inFlight) }, write))
    print(`flat ${count} ${Math.round(longest)}`)
  },
  async effects(store) {
    for (;;) {
      const key = random()
      const opened = await store.open(intent(store, key))
      if (opened.kind !== 'ticket') throw new Error(opened.kind)
      print(`intent ${key}`)
      await store.close(opened.ticket, closing(store))
      print(`outcome ${key}`)
    }
  },
  async health(store) {
    print(`health ${String(store.health())}`)
  },
  async pins(store) {
    print(`pins ${JSON.stringify([...store.pins().values()])}`)
  },
  async stop(store) {
    await store.stop()
    print('stopped')
  },
}

async function run(store: Store, line: string): Promise<void> {
  const [name = '', ...args] = line.split(' ')
  try {
    await COMMANDS[name]?.(store, ...args)
  } catch (error) {
    print(`rejected ${codeOf(error)} ${line}: ${error instanceof Error ? error.message : ''}`)
  }
}

try {
  const store = await openSqlite(options)
  print('ready')
  const script = process.env['ECLUSA_SCRIPT']
  if (script === undefined) {
    const input = createInterface({ input: process.stdin })
    input.on('line', (line) => void run(store, line))
    input.on('close', () => process.exit(0))
  } else {
    for (const line of script.split(';')) await run(store, line)
  }
} catch (error) {
  print(`refused ${codeOf(error)} ${error instanceof Error ? error.message : ''}`)
  process.exitCode = error instanceof Fault ? exitStatus(error.code) : 1
}
