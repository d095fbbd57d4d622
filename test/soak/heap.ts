// What is alive in the heap of another Node, asked over its inspector after a full collection.

const ADDRESS = /ws:\/\/127\.0\.0\.1:\d+\/[0-9a-f-]+/

/** Bytes alive in the main heap of the process that said these words at its start (`--inspect`). */
export async function liveHeap(words: string): Promise<number> {
  const [address] = ADDRESS.exec(words) ?? []
  if (address === undefined) throw new Error(`no inspector: ${words.slice(0, 500)}`)
  const socket = new WebSocket(address)
  try {
    await new Promise((resolve, reject) => {
      socket.addEventListener('open', resolve)
      socket.addEventListener('error', reject)
    })
    await ask(socket, 'HeapProfiler.collectGarbage')
    const usage = await ask(socket, 'Runtime.getHeapUsage')
    return Number(usage['usedSize'])
  } finally {
    socket.close()
  }
}

let last = 0

function ask(socket: WebSocket, method: string): Promise<{ readonly [key: string]: unknown }> {
  const id = ++last
  return new Promise((resolve, reject) => {
    socket.addEventListener('close', () => reject(new Error('the inspector closed')))
    socket.addEventListener('message', ({ data }) => {
      const said = JSON.parse(String(data)) as {
        readonly id?: number
        readonly result?: { readonly [key: string]: unknown }
      }
      if (said.id === id) resolve(said.result ?? {})
    })
    socket.send(JSON.stringify({ id, method, params: {} }))
  })
}
