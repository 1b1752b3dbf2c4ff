// What /metrics says when something happens: connections turned away, the pace, merges, publication, identities, threads.
import fs from 'node:fs'
import net from 'node:net'
import path from 'node:path'
import { Daemon, check, equal, root, test, until } from './lib.mjs'

const tlsFile = (name) => path.join(root, 'tests/data/tls', name)
const d = await Daemon.start({ args: ['--set', 'http.header_timeout=200ms', '--set', 'async_insert_use_adaptive_busy_timeout=0',
  '--set', 'async_insert_busy_timeout_max_ms=20', '--set', 'async_insert_busy_timeout_min_ms=20',
  '--set', 'tls.listen=127.0.0.1:0', '--set', `tls.cert=${tlsFile('one.pem')}`, '--set', `tls.key=${tlsFile('one.key')}`] })
const tlsPort = Number(/^tls=(\d+)$/m.exec(fs.readFileSync(path.join(d.dir, 'ports'), 'utf8'))[1])

async function value(series) {
  const line = (await d.admin('/metrics')).text.split('\n').find((one) => one.startsWith(`${series} `))
  check(line, `${series} is on the page`)
  return Number(line.slice(series.length + 1))
}
const refused = (reason) => value(`sluice_http_connections_refused_total{reason="${reason}"}`)
// A connection that ends when the other side wants it to.
const connect = (port, bytes) => new Promise((resolve) => {
  const socket = net.connect(port, '127.0.0.1', () => bytes && socket.write(bytes))
  socket.on('error', () => {}) // closed at once
  socket.on('close', resolve)
})

await test(d, {
  'what can be known is there before it happens': async () => {
    for (const series of ['sluice_flushes_total{trigger="bytes"}', 'sluice_merges_total{outcome="failed"}', 'sluice_parts_removed_total{reason="ttl"}',
      'sluice_inserts_total{protocol="clickhouse",ack="stored"}', 'sluice_merge_bytes_total{direction="read"}',
      'sluice_lock_wait_seconds_total{lock="buffers"}']) equal(await value(series), 0, series)
  },
  'connections that never asked': async () => {
    equal([await refused('limit'), await refused('tls'), await refused('timeout')], [0, 0, 0], 'at first')
    await connect(d.port)
    await until(async () => (await refused('timeout')) === 1, 'a silent one to be counted')
    await connect(tlsPort, 'GET /ping HTTP/1.1\r\nHost: h\r\n\r\n')
    await until(async () => (await refused('tls')) === 1, 'one without TLS to be counted')
    equal((await d.request({ method: 'GET', path: '/ping', agent: false })).status, 200, 'one that asks')
    equal([await refused('tls'), await refused('timeout')], [1, 1], 'who asked is not counted')
  },
  'too many of one address at the admin port': async () => {
    const sockets = Array.from({ length: 64 }, () => net.connect(d.adminPort, '127.0.0.1').on('error', () => {}))
    await Promise.race(sockets.map((socket) => new Promise((resolve) => socket.on('close', resolve))))
    for (const socket of sockets) socket.destroy()
    await until(() => refused('limit').then((n) => n > 0, () => false), 'the refusals') // the page needs a connection too
  },
  'the pace and the window of a table': async () => {
    await d.sql('CREATE TABLE t (id UInt64) ENGINE = MergeTree ORDER BY id')
    equal(await value('sluice_flush_wait_seconds{table="default.t"}'), 0, 'before the first insert')
    equal(await value('sluice_dedup_oldest_token_age_seconds{table="default.t"}'), 0, 'no identity')
    for (let i = 0; i < 2; i++) equal((await d.insert('t', `{"id":${i}}`, { insert_deduplication_token: `k${i}` })).status, 200, 'insert')
    equal(await value('sluice_flush_wait_seconds{table="default.t"}'), 0.02, 'the wait')
    check(await value('sluice_dedup_oldest_token_age_seconds{table="default.t"}') > 0, 'the age of k0')
  },
  'bytes of merges': async () => {
    await d.sql('OPTIMIZE TABLE t FINAL')
    const [[bytes]] = await d.rows(`SELECT sum(bytes_on_disk) FROM system.parts WHERE table = 't' AND active`)
    equal(await value('sluice_merge_bytes_total{direction="written"}'), Number(bytes), 'written')
    check(await value('sluice_merge_bytes_total{direction="read"}') > Number(bytes), 'two sources were read')
  },
  'publication that lags': async () => {
    await d.sql(`CREATE TABLE p (id UInt64) ENGINE = MergeTree ORDER BY id SETTINGS publish = 'delta', publish_interval = 3600`)
    await until(async () => (await value('sluice_delta_version{table="default.p"}')) === 0, 'the first version')
    equal(await value('sluice_publish_lag_seconds{table="default.p"}'), 0, 'nothing waits')
    equal((await d.insert('p', '{"id":1}')).status, 200, 'insert')
    check(await value('sluice_publish_lag_seconds{table="default.p"}') > 0, 'a part waits')
  },
  'threads that worked': async () => {
    await d.rows('SELECT count() FROM t')
    for (const worker of ['http', 'query', 'flush']) {
      check(await value(`sluice_worker_threads{worker="${worker}"}`) > 0, `${worker}: threads`)
      check(await value(`sluice_worker_busy_seconds_total{worker="${worker}"}`) > 0, `${worker}: time`)
    }
  },
})
