// Waiting connections: any number of them is answered, those that leave are noticed, those that wait too long are told.
import net from 'node:net'
import { Daemon, check, equal, test, until } from './lib.mjs'

const d = await Daemon.start({ args: ['--set', 'async_insert_busy_timeout_min_ms=100', '--set', 'async_insert_busy_timeout_max_ms=100'] })
const slow = { async_insert_busy_timeout_max_ms: 60000, async_insert_use_adaptive_busy_timeout: 0 }

const bodyOf = (id) => `{"id":${id}}`
const requestOf = (id, params = {}) => {
  const body = bodyOf(id)
  const query = new URLSearchParams({ query: 'INSERT INTO t FORMAT JSONEachRow', ...params })
  return `POST /?${query} HTTP/1.1\r\nHost: h\r\nContent-Length: ${body.length}\r\n\r\n${body}`
}

await test(d, {
  'a table': () => d.sql('CREATE TABLE t (id UInt64) ENGINE = MergeTree ORDER BY id'),
  'exactly 128, 256 and 384 connections in a closed loop do not stall': async () => {
    for (const connections of [128, 256, 384]) {
      d.agent.maxSockets = connections
      for (let round = 0; round < 5; round++) {
        const answers = await Promise.all(Array.from({ length: connections }, (_, i) => d.insert('t', bodyOf(i))))
        check(answers.every((a) => a.status === 200 && a.headers['x-sluice-ack'] === 'stored'), `${connections} stored`)
      }
    }
    equal(Number(await d.sql('SELECT count() FROM t')), 5 * (128 + 256 + 384), 'rows')
  },
  'a client that leaves is noticed, its rows stay': async () => {
    const open = await d.metric('sluice_http_connections')
    const sockets = Array.from({ length: 50 }, () => net.connect(d.port, '127.0.0.1'))
    sockets.forEach((socket, i) => socket.write(requestOf(1000000 + i, slow)))
    await until(async () => (await d.metric('sluice_buffer_inserts')) === 50, '50 inserts in the buffer')
    sockets.forEach((socket) => socket.destroy())
    await until(async () => (await d.metric('sluice_http_connections')) <= open, 'the connections to be gone')
    equal(await d.metric('sluice_buffer_inserts'), 50, 'inserts in the buffer')
    await d.sql('SYSTEM FLUSH ASYNC INSERT QUEUE')
    equal(Number(await d.sql('SELECT count() FROM t WHERE id >= 1000000')), 50, 'rows')
  },
  'a wait that is too long ends with 408 and the batch, and the insert stays': async () => {
    const a = await d.insert('t', bodyOf(2000000), { ...slow, wait_for_async_insert_timeout: 1 })
    equal(a.status, 408, a.text)
    check(/^Code: 159\. DB::Exception: Wait for async insert timeout \(1000 ms\) exceeded/.test(a.text), a.text)
    check(/^[0-9a-f-]{36}$/.test(a.headers['x-sluice-batch']), 'X-Sluice-Batch')
    equal(Number(await d.sql('SELECT count() FROM t WHERE id = 2000000')), 0, 'rows before')
    await d.sql('SYSTEM FLUSH ASYNC INSERT QUEUE t')
    equal(Number(await d.sql('SELECT count() FROM t WHERE id = 2000000')), 1, 'rows after')
    const fate = (answer) => d.rows(`SELECT status, outcome, code, dead_letter FROM system.asynchronous_insert_log WHERE flush_query_id = '${answer.headers['x-sluice-batch']}'`)
    equal(await fate(a), [['Ok', 'stored', 0, false]], 'the fate of the batch')
    const b = await d.insert('t', '{"id":"x"}', { ...slow, wait_for_async_insert_timeout: 1 })
    equal(b.status, 408, b.text)
    await d.sql('SYSTEM FLUSH ASYNC INSERT QUEUE t')
    equal(await fate(b), [['ParsingError', 'refused', 27, true]], 'the fate of one that is refused later')
  },
  'more connections than the limit get 503, the admin port answers': async () => {
    const small = await Daemon.start({ args: ['--set', 'http.connections=64', '--set', 'http.threads=1'] })
    const sockets = []
    const statuses = []
    for (let i = 0; i < 60; i++) {
      const socket = net.connect(small.port, '127.0.0.1')
      sockets.push(socket)
      statuses.push(new Promise((resolve) => {
        let text = ''
        socket.on('data', (data) => {
          text += data
          if (text.includes('\r\n\r\n')) resolve(Number(text.slice(9, 12)))
        })
        socket.on('error', () => resolve(0))
      }))
      await new Promise((resolve) => socket.on('connect', resolve))
    }
    await until(async () => (await small.metric('sluice_http_connections')) >= 60, '60 connections')
    sockets.forEach((socket) => socket.write('GET /?query=SELECT+1 HTTP/1.1\r\nHost: h\r\n\r\n'))
    const got = await Promise.all(statuses)
    check(got.some((s) => s === 503), 'some are sent away with 503')
    equal((await small.admin('/-/healthy')).status, 200, 'health')
    sockets.forEach((socket) => socket.destroy())
    await small.close()
  },
})
