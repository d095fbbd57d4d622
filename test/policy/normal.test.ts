// path_under and host_in take only normal forms, and take no prefix for a folder or a domain.

import assert from 'node:assert/strict'
import { test } from 'node:test'

import { hostEntryProblem, isHostIn, isUnder, pathProblem } from '../../src/policy/normal.ts'
import { uriListed, uriProblem } from '../../src/policy/pattern.ts'

test('a path is under a base by whole segments', () => {
  for (const path of [
    '/srv/pub',
    '/srv/pub/a',
    '/srv/pub/a/b.txt',
    '/srv/pub/naïve',
    '/srv/pub/a b',
  ]) {
    assert.ok(isUnder(path, ['/srv/pub']), path)
  }
  for (const path of [
    '/srv/public',
    '/srv/pub2/a',
    '/srv',
    '/',
    'srv/pub/a',
    '/SRV/pub/a',
    './a',
    '',
  ]) {
    assert.ok(!isUnder(path, ['/srv/pub']), path)
  }
  assert.ok(
    isUnder('notes/a', ['notes']) && isUnder('notes/a', ['.']) && !isUnder('/notes/a', ['.']),
  )
  assert.ok(isUnder('/a', ['/']) && isUnder('/b/c', ['/a', '/b']))
})

const BAD_PATHS: readonly string[] = [
  '/srv/pub/../x',
  '/srv/pub/..',
  '/srv/pub/./a',
  '/srv/pub/a/.',
  '/srv/pub//a',
  '/srv/pub/',
  '//srv/pub/a',
  '/srv/pub/a:stream',
  '/srv/pub/a::$DATA',
  'C:\\pub\\..\\x',
  'C:x',
  'C:/pub/x',
  '\\\\?\\C:\\x',
  '\\\\host\\share',
  '/srv/pub\\..\\x',
  'file:///srv/pub/x',
  '/srv/pub/%2e%2e/x',
  '/srv/pub/%2E./x',
  '/srv/pub/%2fetc',
  '/srv/pub/%252e%252e/x',
  '/srv/pub/\u2025/x',
  '/srv/pub/\u2024\u2024/x',
  '/srv/pub/\uff0e\uff0e/x',
  '/srv/pub/..\uff0fx',
  '/srv/pub\u2215..\u2215x',
  '/srv/pub/a\u0000.txt',
  '/srv/pub/a\n',
  '/srv/pub/a\u200b',
  '/srv/pub/.\u200d./x',
  '/srv/pub/\u202etxt',
  '/srv/pub/a\ufe0f',
  '/srv/pub/a\u00ad',
  '/srv/pub/\u3164',
  '/srv/pub/\ud800',
  '/srv/pub/cafe\u0301',
  '/srv/pub/a.',
  '/srv/pub/a ',
  '/srv/pub/ a',
  '/srv/pub/a /b',
  '/srv/pub/.. /x',
  '/srv/pub/...',
  '~/x',
  '~root/x',
  '/srv/pub/a\u00a0',
]

for (const path of BAD_PATHS) {
  test(`the path ${JSON.stringify(path)} is under nothing`, () => {
    assert.notEqual(pathProblem(path), null)
    assert.ok(!isUnder(path, ['/', '.', '/srv/pub', 'C:', '~']))
  })
}

const HOSTS = [
  'api.example.com',
  '*.example.org',
  'local.test:8443',
  '10.0.0.7',
  '[::1]:8080',
  'xn--bcher-kva.example',
]

test('a host, or the host of a URL, is in the list with its port', () => {
  for (const value of [
    'api.example.com',
    'https://api.example.com',
    'https://api.example.com/a/b?c=d#e',
    'http://a.example.org/',
    'https://a.b.example.org/x',
    'https://local.test:8443/x',
    'http://10.0.0.7/x',
    'ws://[::1]:8080/x',
    'https://xn--bcher-kva.example/',
    'https://api.example.com?x=@evil.test',
  ]) {
    assert.ok(isHostIn(value, HOSTS), value)
  }
})

const BAD_HOSTS: readonly string[] = [
  '',
  'example.org',
  'https://example.org/',
  'https://evil.test/',
  'https://api.example.com.evil.test/',
  'https://evil-api.example.com/',
  'https://notexample.org/',
  'https://api.example.com:444/',
  'https://api.example.com:443/',
  'https://api.example.com:/',
  'https://local.test/',
  'https://api.example.com@evil.test/',
  'https://evil.test@api.example.com/',
  'https://user:pass@api.example.com/',
  'https://api.example.com./',
  'https://API.example.com/',
  'HTTPS://api.example.com/',
  'https:/api.example.com/',
  'https:api.example.com',
  'https:///api.example.com/',
  'https:\\\\api.example.com/',
  'https://api.example.com\\@evil.test/',
  'https://evil.test\\.example.org/',
  '//api.example.com/',
  'file://api.example.com/etc',
  'ftp://api.example.com/',
  'javascript://api.example.com/%0aalert(1)',
  'https://b\u00fccher.example/',
  'https://api\u3002example.com/',
  'https://api.example\u2024com/',
  'https://api.example.com\u0000.evil.test/',
  'https://api.example.com\t/',
  'https://api.example.com/a b',
  'https://api.example.com/\u202e',
  ' https://api.example.com/',
  'https://%61pi.example.com/',
  'https://2130706433/',
  'https://0x7f.1/',
  'https://127.1/',
  'https://010.0.0.7/',
  'https://10.0.0.07/',
  'https://10.0.7/',
  'https://[::ffff:10.0.0.7]/',
  'https://[::1]/',
  'https://[0:0:0:0:0:0:0:1]:8080/',
  'api.example.com/evil',
  'api.example.com#@evil.test',
  'api.example.com:443',
  '.example.org',
  'a..example.org',
  '-a.example.org',
  'x'.repeat(9_000),
]

for (const value of BAD_HOSTS) {
  test(`the host of ${JSON.stringify(value.slice(0, 60))} is not in the list`, () => {
    assert.ok(!isHostIn(value, HOSTS))
  })
}

test('an entry of host_in is in normal form itself', () => {
  for (const entry of HOSTS) assert.equal(hostEntryProblem(entry), null, entry)
  for (const entry of [
    '',
    'Api.example.com',
    'https://a.test',
    'a.test/',
    '*',
    '*.',
    'a.*.test',
    '127.1',
    'a.test:0',
    'a.test:99999',
    'b\u00fccher.example',
  ]) {
    assert.notEqual(hostEntryProblem(entry), null, entry)
  }
})

const RESOURCES = [
  { source: 'notes://public/*', path: '/0' },
  { source: 'file:///srv/pub/readme.txt', path: '/1' },
]

test('a resource is listed by its URI or by a prefix that ends in a slash', () => {
  for (const uri of [
    'notes://public/a',
    'notes://public/a/b',
    'notes://public/a%20b',
    'notes://public/{id}',
    'file:///srv/pub/readme.txt',
  ]) {
    assert.notEqual(uriListed(RESOURCES, uri), null, uri)
  }
  for (const uri of [
    'notes://public',
    'notes://publicity/a',
    'notes://private/a',
    'file:///srv/pub/readme.txt2',
    'NOTES://public/a',
    '',
  ]) {
    assert.equal(uriListed(RESOURCES, uri), null, uri)
  }
})

for (const uri of [
  'notes://public/../private/a',
  'notes://public/a/../../private',
  'notes://public/..',
  'notes://public/./a',
  'notes://public/%2e%2e/private/a',
  'notes://public/%2E%2e/private/a',
  'notes://public/.%2e/private/a',
  'notes://public/%252e%252e/private/a',
  'notes://public/%25252e%25252e/private/a',
  'notes://public/..%2fprivate',
  'notes://public/a%2f..%2f..%2fprivate',
  'notes://public/..\\private',
  'notes://public/..%5cprivate',
  'notes://public/..?x',
  'notes://public/..#x',
  'notes://public/a\u0000',
  'notes://public/a%00',
  'notes://public/a\u200b',
  'notes://public/a\nb',
]) {
  test(`the URI ${JSON.stringify(uri)} is refused before any pattern`, () => {
    assert.notEqual(uriProblem(uri), null)
    assert.equal(uriListed([{ source: uri, path: '/0' }, ...RESOURCES], uri), null)
  })
}
