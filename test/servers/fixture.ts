// The fixture as a program: `fixture.ts [--http] [--eras both|modern|legacy]`; over HTTP it prints its URL.

import { parseArgs } from 'node:util'

import type { JSONRPCMessage, Transport } from '@modelcontextprotocol/server'
import { serveStdio, StdioServerTransport } from '@modelcontextprotocol/server/stdio'

import { serveFixtureHttp } from './fixture-http.ts'
import { fixture } from './fixture-server.ts'
import { taskTable, type Tasks } from './fixture-tasks.ts'

const { values } = parseArgs({
  options: {
    http: { type: 'boolean', default: false },
    eras: { type: 'string', default: 'both' },
    port: { type: 'string', default: '0' },
  },
})

/** A transport before which the tasks extension is answered. */
function tasking(inner: Transport, tasks: Tasks): Transport {
  const outer: Transport = {
    start: async () => {
      const hears: Pick<Transport, 'onmessage' | 'onclose' | 'onerror'> = {
        onmessage: (message, extra) => {
          const reply = tasks(message)
          if (reply === undefined) outer.onmessage?.(message, extra)
          else void inner.send(reply)
        },
        onclose: () => outer.onclose?.(),
        onerror: (error) => outer.onerror?.(error),
      }
      Object.assign(inner, hears)
      await inner.start()
    },
    send: (message: JSONRPCMessage) => inner.send(message),
    close: () => inner.close(),
  }
  return outer
}

const made = fixture()
if (values.http) {
  const url = await serveFixtureHttp(made, { eras: values.eras, port: Number(values.port) })
  process.stdout.write(`${url}\n`)
} else if (values.eras === 'legacy') {
  await made.make().connect(new StdioServerTransport())
} else {
  serveStdio(made.make, {
    legacy: values.eras === 'modern' ? 'reject' : 'serve',
    transport: tasking(new StdioServerTransport(), taskTable()),
  })
}
