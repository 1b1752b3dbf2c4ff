// Too much of everything: bytes, senders, shapes, connections, descriptors, patience; and a slow disk and a clock that jumps.
// What is taken is kept, what is not is told so, and the admin port answers.
import crypto from 'node:crypto'
import fs from 'node:fs'
import net from 'node:net'
import path from 'node:path'
import { Daemon, check, equal, faults, parallel, sanitized, test, until } from './lib.mjs'

// 100,000 bytes that do not compress, and are no other insert's.
const pads = Array.from({ length: 64 }, () => crypto.randomBytes(75000).toString('base64'))
const pad = (id) => String(id).padEnd(8) + pads[id % 64].slice(8)
const noWait = { wait_for_async_insert: 0 }
const table = 'CREATE TABLE t (id UInt64, s String) ENGINE = MergeTree ORDER BY id'
const patient = { async_insert_busy_timeout_max_ms: 60000, async_insert_use_adaptive_busy_timeout: 0 }
const small = { ...patient, async_insert_max_data_size: 1000000 } // a batch that costs its syncs for little
const resident = (d, name = 'VmHWM') => Number(new RegExp(`^${name}:\\s+(\\d+)`, 'm').exec(fs.readFileSync(`/proc/${d.child.pid}/status`, 'utf8'))[1]) * 1024
const head = (length, query = 'INSERT INTO t FORMAT JSONEachRow') =>
  `POST /?${new URLSearchParams({ query })} HTTP/1.1\r\nHost: h\r\nContent-Length: ${length}\r\n\r\n`
const admin = async (d) => equal((await d.admin('/-/healthy')).status, 200, 'the admin port')
const connect = (d) => new Promise((resolve) => {
  const socket = net.connect(d.port, '127.0.0.1', () => resolve(socket))
  socket.on('error', () => resolve(socket))
})

// A disk that is slow where it can be, so that there is too much at all.
let d = await Daemon.start({ args: ['--set', 'memory.max=128MiB', '--set', 'spool.mode=off'], env: faults ? { LD_PRELOAD: faults, FAULT_SYNC_MS: '200' } : {} })
await test(d, {
  'O-1, O-3: more than there is room for: what is taken is kept, the rest is told 503, why, and when to come back': async () => {
    await d.sql(table)
    const taken = []
    const refused = []
    d.agent.maxSockets = 64
    await parallel(64, Array.from({ length: 3000 }, (_, id) => async () => {
      const a = await d.insert('t', JSON.stringify({ id, s: pad(id) }), { ...noWait, ...small })
      if (a.status === 200) return taken.push(id)
      equal(a.status, 503, a.text.slice(0, 200))
      check(['202', '241'].includes(a.headers['x-clickhouse-exception-code']), `the code: ${a.text.slice(0, 100)}`)
      const seconds = Number(a.headers['retry-after'])
      check(seconds >= 1 && seconds <= 60, `Retry-After ${seconds}`)
      refused.push(id)
    }))
    await admin(d)
    check(taken.length > 0 && (refused.length > 0 || !faults), `${taken.length} taken, ${refused.length} refused`)
    await d.sql('SYSTEM FLUSH ASYNC INSERT QUEUE')
    taken.sort((a, b) => a - b)
    equal((await d.rows('SELECT id FROM t ORDER BY id')).map(([id]) => Number(id)), taken, 'rows')
    if (!sanitized) check(resident(d) <= (128 + 64) << 20, `resident at most ${resident(d) >> 20} MiB`)
  },
  'O-7: it is over at once when the load is': async () => {
    const a = await d.insert('t', '{"id":1000000}')
    equal(a.status, 200, 'an insert after it')
    await until(async () => (await d.metric('sluice_buffer_inserts')) === 0, 'its batch to be over')
  },
  'O-5: a quiet sender is served beside one that fills the memory': async () => {
    await d.sql('CREATE TABLE quiet (id UInt64) ENGINE = MergeTree ORDER BY id')
    if (!faults) return
    let loud = true
    const noise = parallel(48, Array.from({ length: 48 }, (_, n) => async () => {
      for (let i = 0; loud; i++) await d.insert('t', JSON.stringify({ id: 2000000 + n * 100000 + i, s: pad(n * 100000 + i) }), { ...noWait, ...small })
    }))
    await until(async () => (await d.metric('sluice_http_throttled_total')) > 50, 'refusals')
    for (let id = 0; id < 5; id++) equal((await d.insert('quiet', `{"id":${id}}`)).status, 200, `quiet insert ${id}`)
    loud = false
    await noise
  },
  'F-17: clients that stop in the middle of a body give everything back': async () => {
    await d.stop()
    d.args.push('--set', 'http.request_timeout=1s', '--set', 'http.idle_timeout=1s')
    await d.launch()
    const before = await d.metric('sluice_http_connections')
    const sockets = await Promise.all(Array.from({ length: 200 }, () => connect(d)))
    sockets.forEach((socket, i) => socket.write(head(1000000) + 'x'.repeat(i * 10)))
    await until(async () => (await d.metric('sluice_http_connections')) >= before + 200, '200 connections')
    const rows = await d.rows('SELECT count() FROM t')
    equal((await d.insert('quiet', '{"id":1000}')).status, 200, 'an insert beside them')
    await until(async () => (await d.metric('sluice_http_connections')) <= before + 1, 'the connections to be gone')
    equal(await d.rows('SELECT count() FROM t'), rows, 'nothing of them is stored')
    sockets.forEach((socket) => socket.destroy())
  },
})

d = await Daemon.start({ args: ['--set', 'memory.max=64MiB'] })
await test(d, {
  'O-1: inserts of 10 MB, and merges of their parts, stay within a budget of 64 MiB': async () => {
    await d.sql(table)
    const rows = 100 // of each body
    for (let n = 0; n < 12; n++) {
      const body = Array.from({ length: rows }, (_, i) => JSON.stringify({ id: n + 12 * i, s: pad(n + 12 * i) })).join('\n')
      const a = await d.insert('t', body)
      equal(a.status, 200, a.text.slice(0, 200))
    }
    await d.sql('OPTIMIZE TABLE t FINAL')
    equal(await d.rows("SELECT count() FROM system.parts WHERE active AND table = 't'"), [[1]], 'parts')
    if (!sanitized) check(resident(d) <= (64 + 64) << 20, `resident at most ${resident(d) >> 20} MiB`)
    equal(await d.rows("SELECT count(), uniqExact(id), sum(startsWith(s, concat(toString(id), ' '))), sum(length(s)) FROM t"), [[1200, 1200, 1200, 1200 * pad(0).length]], 'rows')
  },
})

d = await Daemon.start({ args: ['--set', 'memory.max=128MiB'] })
await test(d, {
  'O-6: many slow bodies: as many as there is room for are read, the others are told so, and memory stays': async () => {
    await d.sql(table)
    const count = 200, most = 32 // a mebibyte is set apart for each, of the quarter that bodies have
    const answers = []
    const sockets = await Promise.all(Array.from({ length: count }, () => connect(d)))
    for (const socket of sockets) {
      socket.once('data', (data) => answers.push(/^HTTP\/1.1 (\d+)[^]*X-ClickHouse-Exception-Code: (\d+)/.exec(data)?.slice(1)))
      socket.write(head(20000000) + 'x'.repeat(1000))
    }
    await until(() => answers.length >= count - most, 'the refusals')
    for (const answer of answers) equal(answer, ['503', '241'], 'a refusal')
    check(answers.length < count, 'some are read')
    await admin(d)
    if (!sanitized) check(resident(d) <= (128 + 64) << 20, `resident at most ${resident(d) >> 20} MiB`)
    sockets.forEach((socket) => socket.destroy())
    await until(async () => (await d.metric('sluice_memory_bytes')) === 0, 'the memory')
  },
})

// The buffers hold 24 MiB, and write nothing early below 16.
d = await Daemon.start({ args: ['--set', 'memory.max=64MiB', '--set', 'spool.mode=off'] })
await test(d, {
  'O-2: what finds no room once its body is there is refused before it is looked at': async () => {
    await d.sql(table)
    const settings = { ...noWait, ...patient, async_insert_max_data_size: 100000000 }
    const mebibyte = 1 << 20
    const broken = '{"id":'.padEnd(12 * mebibyte)
    const socket = await connect(d)
    const answer = (what) => new Promise((resolve) => {
      let text = ''
      socket.on('data', function more(data) {
        text += data
        if (!what.test(text)) return
        socket.off('data', more)
        resolve(text)
      })
    })
    const query = new URLSearchParams({ query: 'INSERT INTO t FORMAT JSONEachRow', ...settings })
    const goOn = answer(/100 Continue\r\n\r\n/)
    socket.write(`POST /?${query} HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: ${broken.length}\r\n\r\n`)
    await goOn
    const row = JSON.stringify({ id: 1, s: 'x'.repeat(2 * mebibyte) })
    for (let i = 0; i < 7; i++) equal((await d.insert('t', row, settings)).status, 200, `insert ${i}`)
    const told = answer(/\r\n\r\n/)
    socket.write(broken)
    equal(/^HTTP\/1.1 (\d+)[^]*X-ClickHouse-Exception-Code: (\d+)/.exec(await told)?.slice(1), ['503', '241'], 'the answer')
    socket.destroy()
  },
})

d = await Daemon.start({ args: ['--set', 'buffers.max=100', '--set', 'memory.max=128MiB'] })
await test(d, {
  'O-8, O-11: shapes without end: few are alive, nothing is lost, and the page of metrics stays small': async () => {
    await d.sql(table)
    d.agent.maxSockets = 32
    let most = 0
    const count = 4000
    await parallel(32, Array.from({ length: count }, (_, id) => async () => {
      const a = await d.insert('t', `{"id":${id},"s":""}`, { ...noWait, ...patient, input_format_allow_errors_num: id })
      equal(a.status, 200, a.text)
      if (id % 500 === 0) most = Math.max(most, await d.metric('sluice_buffers'))
    }))
    check(most <= 100, `${most} buffers alive`)
    await d.sql('SYSTEM FLUSH ASYNC INSERT QUEUE')
    equal(await d.rows('SELECT count(), uniqExact(id) FROM t'), [[count, count]], 'rows')
    const page = await d.admin('/metrics')
    check(page.text.length < 2 << 20, `the page has ${page.text.length} bytes`)
    if (!sanitized) check(resident(d) <= (128 + 64) << 20, `resident at most ${resident(d) >> 20} MiB`)
  },
})

d = await Daemon.start({ under: ['sh', '-c', 'ulimit -n 128; exec "$0" "$@"'] })
await test(d, {
  'F-12, O-9: no descriptors: commits go on, the admin port answers, and it is over when they come back': async () => {
    await d.sql(table)
    const slow = { ...noWait, async_insert_busy_timeout_max_ms: 2000, async_insert_use_adaptive_busy_timeout: 0 }
    for (let id = 0; id < 10; id++) equal((await d.insert('t', `{"id":${id}}`, slow)).status, 200, 'before')
    const sockets = await Promise.all(Array.from({ length: 300 }, () => connect(d)))
    await admin(d)
    await until(async () => (await d.metric('sluice_buffer_inserts')) === 0, 'the commit')
    sockets.forEach((socket) => socket.destroy())
    await until(async () => (await d.insert('t', '{"id":20}', { insert_deduplication_token: 'x' }).catch(() => ({}))).status === 200, 'a connection')
    equal(await d.rows('SELECT count() FROM t'), [[11]], 'rows')
  },
})

if (faults) {
  d = await Daemon.start({ env: { LD_PRELOAD: faults, FAULT_SYNC_MS: '300' } })
  await test(d, {
    'F-10: a slow disk: everybody is answered, in the order of minutes not of hours, and the admin port at once': async () => {
      await d.sql(table)
      d.agent.maxSockets = 100
      const answers = Promise.all(Array.from({ length: 100 }, (_, id) => d.insert('t', `{"id":${id}}`)))
      await admin(d)
      check((await answers).every((a) => a.status === 200), 'all are stored')
      equal(await d.rows('SELECT count() FROM t'), [[100]], 'rows')
    },
  })
  const dir = fs.mkdtempSync('/tmp/sluice-clock-'), clock = path.join(dir, 'data', 'offset') // where the daemon may read
  d = await Daemon.start({ dir, env: { LD_PRELOAD: faults, FAULT_CLOCK_FILE: clock } })
  await test(d, {
    'F-15: a wall clock that jumps a day ahead and back: no token is forgotten, no flush is stuck': async () => {
      await d.sql(table)
      let id = 0
      for (const offset of [0, 86400, -86400, 0]) {
        fs.writeFileSync(clock, String(offset))
        check(Math.abs(Number(await d.sql('SELECT toUnixTimestamp(now())')) - Date.now() / 1000 - offset) < 60, `the clock is off by ${offset}`)
        const again = await d.insert('t', '{"id":0}', { insert_deduplication_token: 'first' })
        equal([again.status, again.headers['x-sluice-duplicate']], [200, id === 0 ? undefined : '1'], `the token at ${offset}`)
        equal((await d.insert('t', `{"id":${++id}}`)).status, 200, 'an insert')
        await d.insert('t', `{"id":${++id}}`, noWait)
        await until(async () => Number(await d.sql(`SELECT count() FROM t WHERE id = ${id}`)) === 1, 'the flush')
      }
      equal(await d.rows('SELECT count(), uniqExact(id) FROM t'), [[9, 9]], 'rows')
      await d.restart()
      equal((await d.insert('t', '{"id":0}', { insert_deduplication_token: 'first' })).headers['x-sluice-duplicate'], '1', 'after a restart')
    },
  })
  fs.rmSync(dir, { recursive: true })
}
