// The head of a request to a server over HTTP, as it is written.

import type { HeaderSet } from './headers.ts'

/** What a request says. `own`: headers that go to the server's own origin only; null elsewhere. */
export type Request = {
  readonly method: 'POST' | 'GET' | 'DELETE'
  readonly headers: HeaderSet
  readonly own: HeaderSet | null
  readonly body: string | null
}

/** The head with its last empty line, to be written as Latin-1; null where a name or a value would end a
 *  header and begin another. One of `headers` stands for one of `own` of the same name. */
export function requestHead(to: URL, { body, headers, method, own }: Request): string | null {
  let text = `${method} ${to.pathname}${to.search} HTTP/1.1\r\nHost: ${to.host}\r\n`
  if (!TARGET.test(text)) return null
  for (const name in headers) {
    const value = headers[name] ?? ''
    if (!NAME.test(name) || !VALUE.test(value)) return null
    text += `${name}: ${value}\r\n`
  }
  for (const name in own) {
    const value = own[name] ?? ''
    if (!NAME.test(name) || !VALUE.test(value)) return null
    if (!stands(headers, name.toLowerCase())) text += `${name}: ${value}\r\n`
  }
  if (body !== null) text += `Content-Length: ${Buffer.byteLength(body)}\r\n`
  return `${text}Connection: keep-alive\r\n\r\n`
}

const NAME = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/
const VALUE = /^[\t\u0020-\u007e\u0080-\u00ff]*$/
const TARGET = /^[A-Z]+ [!-~]+ HTTP\/1\.1\r\nHost: [!-~]+\r\n$/

function stands(headers: HeaderSet, lower: string): boolean {
  for (const name in headers) {
    if (name.length === lower.length && name.toLowerCase() === lower) return true
  }
  return false
}
