// Malformed and unusual requests as raw bytes: the documented answer, the connection's fate, and a daemon that lives on.
import net from 'node:net'
import { Daemon, check, equal, test, until } from './lib.mjs'

// Sends pieces (strings, or numbers: a pause in ms), then collects until the server closes, `answers` have come, or time
// is up. {text, closed, statuses}
export function raw(port, pieces, { answers = 1, ms = 5000, end = false } = {}) {
  return new Promise((resolve, reject) => {
    const socket = net.connect(port, '127.0.0.1')
    let text = ''
    let timer = null
    const done = (closed) => {
      clearTimeout(timer)
      socket.destroy()
      resolve({ text, closed, statuses: [...text.matchAll(/^HTTP\/1\.[01] (\d+)/gm)].map((m) => Number(m[1])) })
    }
    timer = setTimeout(() => done(false), ms)
    socket.on('data', (data) => {
      text += data.toString('latin1')
      // An answer that closes does so at once; one that does not is known by its length.
      const whole = [...text.matchAll(/HTTP\/1\.[01] \d+[^]*?\r\n\r\n/g)].filter((m) => {
        const length = /^HTTP\/1\.1 204/.test(m[0]) ? ['', 0] : /^content-length: (\d+)/im.exec(m[0])
        return length && text.length >= m.index + m[0].length + Number(length[1])
      })
      if (whole.length >= answers && !/^connection: close/im.test(text)) done(false)
    })
    socket.on('end', () => done(true))
    socket.on('close', () => done(true))
    socket.on('error', (error) => (text ? done(true) : error.code === 'ECONNRESET' || error.code === 'EPIPE' ? done(true) : reject(error)))
    socket.on('connect', async () => {
      for (const piece of pieces) {
        if (typeof piece === 'number') await new Promise((r) => setTimeout(r, piece))
        else if (!socket.destroyed) socket.write(Buffer.from(piece, 'latin1'))
      }
      if (end) socket.end()
    })
  })
}

const H = 'Host: h\r\n'
const insert = '/?query=INSERT+INTO+t+FORMAT+JSONEachRow'
const row = '{"id":1}'
const post = (headers, body = '', target = insert, version = '1.1') => `POST ${target} HTTP/${version}\r\n${headers}\r\n${body}`

// name, bytes, status (0: closed without an answer), closes
const cases = [
  ['both lengths', post(`${H}Content-Length: 8\r\nTransfer-Encoding: chunked\r\n`, '0\r\n\r\n'), 400, true],
  ['both lengths, the other way round', post(`${H}Transfer-Encoding: chunked\r\nContent-Length: 8\r\n`, row), 400, true],
  ['two different lengths', post(`${H}Content-Length: 8\r\nContent-Length: 9\r\n`, row), 400, true],
  ['two equal lengths', post(`${H}Content-Length: 8\r\nContent-Length: 8\r\n`, row), 400, true],
  ['a blank before the colon', post(`${H}Content-Length : 8\r\n`, row), 400, true],
  ['gzip, chunked', post(`${H}Transfer-Encoding: gzip, chunked\r\n`, '0\r\n\r\n'), 501, true],
  ['a coding in the next line', post(`${H}Content-Length: 8\r\nTransfer-Encoding:\r\n chunked\r\n`, row), 400, true],
  ['a lone CR in a header', post(`${H}X: y\rTransfer-Encoding: chunked\r\nContent-Length: 8\r\n`, row), 400, true],
  ['a length that never fits', post(`${H}Content-Length: 500000000000\r\n`, row), 413, true],
  ['xchunked', post(`${H}Transfer-Encoding: xchunked\r\n`, '0\r\n\r\n'), 501, true],
  ['chunked twice', post(`${H}Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n`, '0\r\n\r\n'), 400, true],
  ['chunked under HTTP/1.0', post(`${H}Transfer-Encoding: chunked\r\n`, '0\r\n\r\n', insert, '1.0'), 400, true],
  ['no Host', post('Content-Length: 8\r\n', row), 400, true],
  ['two Hosts', post(`${H}${H}Content-Length: 8\r\n`, row), 400, true],
  ['an absolute target', `GET http://other/x HTTP/1.1\r\n${H}\r\n`, 400, true],
  ['a zero byte in the path', `GET /ping%00/../../etc HTTP/1.1\r\n${H}\r\n`, 400, true],
  ['.. in the path', `GET /a/%2e%2e/ping HTTP/1.1\r\n${H}\r\n`, 400, true],
  ['a control byte in a header name', `GET /ping HTTP/1.1\r\n${H}X\x01: 1\r\n\r\n`, 400, true],
  ['Content-Length: +5', post(`${H}Content-Length: +5\r\n`, row), 400, true],
  ['Content-Length: 5x', post(`${H}Content-Length: 5x\r\n`, row), 400, true],
  ['PUT', `PUT ${insert} HTTP/1.1\r\n${H}Content-Length: 8\r\n\r\n${row}`, 501, true],
  ['DELETE', `DELETE / HTTP/1.1\r\n${H}\r\n`, 501, true],
  ['BREW', `BREW / HTTP/1.1\r\n${H}\r\n`, 501, true],
  ['HTTP/2 preface', 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', 505, true],
  ['no length', post(H, ''), 411, true],
  ['OPTIONS', `OPTIONS / HTTP/1.1\r\n${H}\r\n`, 204, false],
  ['unknown path', `GET /nope HTTP/1.1\r\n${H}\r\n`, 404, false],
  ['/ping with parameters', `GET /ping?x=1 HTTP/1.1\r\n${H}\r\n`, 404, false],
  ['POST /ping', `POST /ping HTTP/1.1\r\n${H}Content-Length: 0\r\n\r\n`, 404, false],
  ['HTTP/1.0 without Host', 'GET /ping HTTP/1.0\r\n\r\n', 200, true],
  ['GET', `GET /ping HTTP/1.1\r\n${H}\r\n`, 200, false],
  ['an insert', post(`${H}Content-Length: 8\r\n`, row), 200, false],
  ['an insert in chunks', post(`${H}Transfer-Encoding: chunked\r\n`, '4\r\n{"id\r\n4\r\n":1}\r\n0\r\n\r\n'), 200, false],
  ['an insert by HTTP/1.0', post('Content-Length: 8\r\n', row, insert, '1.0'), 200, true],
  ['a huge header', `GET /ping HTTP/1.1\r\n${H}X: ${'x'.repeat(60000)}\r\n\r\n`, 431, true],
  ['a huge target', `GET /ping?${'x'.repeat(60000)} HTTP/1.1\r\n${H}\r\n`, 414, true],
]

const count = async () => Number((await d.sql('SELECT count() FROM t')).trim())

const d = await Daemon.start()
await test(d, {
  'a table': () => d.sql('CREATE TABLE t (id UInt64) ENGINE = MergeTree ORDER BY id'),
  'each request has its answer': async () => {
    for (const [name, bytes, status, closes] of cases) {
      const got = await raw(d.port, [bytes])
      equal(got.statuses[0] ?? 0, status, `${name}: ${JSON.stringify(got.text.slice(0, 300))}`)
      // libmicrohttpd 0.9.75 writes the head of its own refusals of a bad Content-Length twice, then closes.
      const twice = name.startsWith('Content-Length: ') && got.closed && got.statuses.every((s) => s === status)
      check(got.statuses.length === 1 || twice, `one answer to ${name}`)
      if (closes) check(got.closed || /^connection: close/im.test(got.text), `${name}: the connection closes`)
      else check(!got.closed, `${name}: the connection lives on`)
    }
    equal(await count(), 3, 'rows of the good inserts')
  },
  'what follows a refused body is never a request of its own': async () => {
    const smuggled = `GET /ping HTTP/1.1\r\n${H}\r\n`
    for (const bytes of [post(`${H}Content-Length: ${smuggled.length}\r\nTransfer-Encoding: chunked\r\n`, `0\r\n\r\n${smuggled}`),
      post(`${H}Content-Length : ${smuggled.length}\r\n`, smuggled),
      post(`${H}Content-Length: 0\r\nContent-Length: ${smuggled.length}\r\n`, smuggled)]) {
      const got = await raw(d.port, [bytes], { answers: 2, ms: 1000 })
      equal(got.statuses, [400], 'statuses')
    }
  },
  'a short body that is refused is read, and the connection lives on': async () => {
    const bad = post(`${H}Content-Length: 8\r\n`, row, '/?query=INSERT+INTO+nope+FORMAT+JSONEachRow')
    const got = await raw(d.port, [bad, `GET /ping HTTP/1.1\r\n${H}\r\n`], { answers: 2 })
    equal(got.statuses, [404, 200], 'statuses')
  },
  'a long body that is refused ends the connection, after the answer': async () => {
    const got = await raw(d.port, [post(`${H}Content-Length: 5000000\r\n`, 'x', '/?query=INSERT+INTO+nope+FORMAT+JSONEachRow')])
    equal(got.statuses, [404], 'statuses')
    check(got.closed, 'closed')
  },
  'Expect: 100-continue is answered by 100, or at once by the refusal': async () => {
    const good = await raw(d.port, [post(`${H}Content-Length: 8\r\nExpect: 100-continue\r\n`), 100, row], { answers: 1 })
    equal(good.statuses, [100, 200], 'statuses of a good insert')
    const bad = await raw(d.port, [post(`${H}Content-Length: 8\r\nExpect: 100-continue\r\n`, '', '/?query=INSERT+INTO+nope+FORMAT+CSV')])
    equal(bad.statuses, [404], 'statuses of a refused one')
  },
  "a chunk's size without an end ends the connection": async () => {
    const got = await raw(d.port, [post(`${H}Transfer-Encoding: chunked\r\n`, `8;${'x'.repeat(70000)}`)], { ms: 15000 })
    check(got.closed && got.statuses.length === 0, JSON.stringify(got))
  },
  'a body that ends early stores nothing': async () => {
    const before = await count()
    await raw(d.port, [post(`${H}Content-Length: 100\r\n`, row + row)], { end: true, ms: 3000 })
    await raw(d.port, [post(`${H}Transfer-Encoding: chunked\r\n`, '8\r\n{"id":1}\r\n')], { end: true, ms: 3000 })
    await raw(d.port, [post(`${H}Transfer-Encoding: chunked\r\n`, '20\r\n{"id":1}')], { end: true, ms: 3000 })
    await raw(d.port, [post(`${H}Transfer-Encoding: chunked\r\n`, '8\r\n{"id":1}\r\nzz\r\n')], { ms: 3000 })
    await d.admin('/-/flush', 'POST')
    equal(await count(), before, 'rows')
  },
  'pipelined requests are answered in order, a waiting one first': async () => {
    const got = await raw(d.port, [post(`${H}Content-Length: 8\r\n`, row) + `GET /ping HTTP/1.1\r\n${H}\r\nGET /nope HTTP/1.1\r\n${H}\r\n`],
      { answers: 3 })
    equal(got.statuses, [200, 200, 404], 'statuses')
  },
  'every way to cut a request into pieces gives the same answer': async () => {
    const bytes = post(`${H}Transfer-Encoding: chunked\r\n`, '4\r\n{"id\r\n4\r\n":7}\r\n0\r\n\r\n')
    const all = []
    for (let at = 1; at < bytes.length; at += 3) all.push(raw(d.port, [bytes.slice(0, at), 5, bytes.slice(at)]))
    for (const got of await Promise.all(all)) equal(got.statuses, [200], 'statuses')
    equal(Number(await d.sql('SELECT count() FROM t WHERE id = 7')), all.length, 'rows')
  },
  'a slow head gives the descriptor back': async () => {
    const hasty = await Daemon.start({ args: ['--set', 'http.header_timeout=2s', '--set', 'http.idle_timeout=3s'] })
    const slow = Array.from({ length: 12 }, (_, i) => ['GET /pi'[i % 7] ?? 'x', 500]).flat()
    check((await raw(hasty.port, slow, { ms: 20000 })).closed, 'the slow connection was closed')
    await hasty.close()
  },
  'thousands of parameters are answered': async () => {
    const ask = (count, method) => {
      const target = `/?query=SELECT+1&${Array.from({ length: count }, (_, i) => `param_${i}=${i}`).join('&')}`
      return raw(d.port, [`${method} ${target} HTTP/1.1\r\n${H}Content-Length: 0\r\n\r\n`], { ms: 20000 })
    }
    for (const method of ['GET', 'POST']) {
      for (const [count, status] of [[440, 200], [990, 200], [1200, 500], [1900, 500], [3000, 414]])
        equal((await ask(count, method)).statuses, [status], `${count} parameters, ${method}`)
    }
  },
  'the daemon is well': async () => {
    equal((await d.admin('/-/healthy')).text, 'ok\n', 'health')
    await until(async () => (await d.metric('sluice_http_requests_in_flight')) === 1, 'no request in flight but this one')
  },
})
