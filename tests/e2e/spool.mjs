// The spool with the real program: who asks for it, what comes back after kill -9, damaged segments, a full disk, full memory,
// a stop that runs out of time. (P-1, P-8, P-9, P-10, P-11, F-1, F-16, O-1)
import crypto from 'node:crypto'
import fs from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { spawnSync } from 'node:child_process'
import { Daemon, check, equal, parallel, run, bin, test, until } from './lib.mjs'

const seed = Number(process.env.SLUICE_SEED ?? 1) // the same each time: a red run can be repeated
console.log(`seed ${seed}`)
let state = seed
const random = (n) => {
  state = (Math.imul(state, 1664525) + 1013904223) >>> 0
  return Math.floor(state / 4294967296 * n)
}

const set = (...pairs) => pairs.flatMap((pair) => ['--set', pair])
const neverFlush = set('async_insert_busy_timeout_min_ms=3600000', 'async_insert_busy_timeout_max_ms=3600000', 'async_insert_max_query_number=1000000')
const spooled = { sluice_ack: 'spooled' }
const flush = (d) => d.sql('SYSTEM FLUSH ASYNC INSERT QUEUE')
const ids = async (d, table = 't') => (await d.rows(`SELECT id FROM ${table} ORDER BY id`)).map(([id]) => Number(id))
const range = (from, to) => Array.from({ length: to - from }, (_, i) => from + i)
const segments = (d) => fs.readdirSync(path.join(d.data, 'spool')).filter((name) => name.endsWith('.spool')).sort()
  .map((name) => path.join(d.data, 'spool', name))

// The spool of a daemon that does not run.
async function offline(d, verb) {
  const { code, stdout } = await run(path.join(bin, 'sluice'), ['spool', verb, d.data, '-o', 'json'])
  return { code, json: JSON.parse(stdout) }
}

async function ledger(d) {
  const sum = (name) => d.metric(`sluice_inserts_${name}`)
  const [accepted, recovered, written, duplicate, pending, letters, discarded, lost] = await Promise.all(
    ['accepted_total', 'recovered_total', 'written_total', 'duplicate_total', 'pending', 'dead_letters', 'discarded_total', 'lost_total'].map(sum))
  return { accepted, recovered, written, duplicate, pending, letters, discarded, lost }
}

// Waits until nothing is in the spool but what is done.
const emptied = (d) => until(async () => {
  await flush(d)
  return (await ledger(d)).pending === 0
}, 'the spool to be empty')

{
  const d = await Daemon.start({ args: neverFlush })
  await test(d, {
    'whoever asks for it gets it: URL, clause': async () => {
      await d.sql('CREATE TABLE t (id UInt64) ENGINE = MergeTree ORDER BY id')
      const answers = [await d.insert('t', '{"id":0}', spooled), await d.insert("t SETTINGS sluice_ack = 'spooled'", '{"id":1}')]
      for (const a of answers) {
        equal([a.status, a.headers['x-sluice-ack']], [200, 'spooled'], a.text)
        check(/^[0-9a-f-]{36}$/.test(a.headers['x-sluice-batch']), 'X-Sluice-Batch')
      }
      equal((await d.insert('t', '{"id":2}', { wait_for_async_insert: 0 })).headers['x-sluice-ack'], 'buffered', 'without asking')
      check((await d.insert('t', '{"id"', spooled)).status >= 400, 'a torn body is refused at once')
    },
    'after kill -9 what was spooled is there once, under load too': async () => {
      await parallel(16, range(10, 500).map((id) => async () => equal((await d.insert('t', `{"id":${id}}`, spooled)).status, 200, `${id}`)))
      await d.kill()
      const found = JSON.parse((await run(path.join(bin, 'sluice'), ['verify', d.data, '-o', 'json'])).stdout)
      equal([found.ok, found.spooled, found.findings.filter((f) => f.kind === 'damage')], [true, 492, []], 'verify')
      const listed = await offline(d, 'list')
      equal([listed.code, listed.json.reduce((n, s) => n + s.undone, 0), listed.json.map((s) => s.path)], [0, 492, segments(d)], 'spool list')
      const verified = await offline(d, 'verify')
      equal([verified.code, verified.json.ok, verified.json.undone], [0, true, 492], 'spool verify')
      await d.launch()
      equal((await run(path.join(bin, 'sluice'), ['spool', 'list', d.data])).code, 4, 'in use')
      equal((await ledger(d)).recovered, 492, 'recovered')
      await flush(d) // waits for those that are only on disk too
      equal(await ids(d), [0, 1, ...range(10, 500)], 'ids')
      await d.kill() // what is marked done stays so
      await d.launch()
      await emptied(d)
      equal((await ids(d)).length, 492, 'rows')
    },
    'what cannot be stored becomes a letter': async () => {
      equal((await d.insert('t', '{"id":"x"}', spooled)).status, 200, 'status')
      await emptied(d)
      equal(await d.rows('SELECT code, body FROM system.dead_letter_queue'), [[27, '{"id":"x"}']], 'letters')
    },
  })
}

{
  const d = await Daemon.start({ args: set('spool.mode=off') })
  await test(d, {
    'a level that cannot be reached is refused': async () => {
      await d.sql('CREATE TABLE t (id UInt64) ENGINE = MergeTree ORDER BY id')
      for (const a of [await d.insert('t', '{"id":0}', spooled), await d.insert("t SETTINGS sluice_ack = 'spooled'", '{"id":1}')])
        equal([a.status, a.headers['x-clickhouse-exception-code']], [400, '36'], a.text)
      equal(await ids(d), [], 'rows')
    },
  })
}

{
  const dir = fs.mkdtempSync(path.join(os.tmpdir(), 'sluice-e2e-'))
  const config = path.join(dir, 'sluice.yaml')
  const sha256 = crypto.createHash('sha256').update('secret').digest('hex')
  fs.writeFileSync(config, `users:\n  agent:\n    password: "sha256:${sha256}"\n    grants: [insert, read, admin]\n    settings: ["sluice_ack=spooled"]\n`)
  const d = await Daemon.start({ dir, args: ['--config', config] })
  const agent = { user: 'agent', password: 'secret' }
  await test(d, {
    'a user has it in his profile, and a request may say otherwise': async () => {
      await d.sql('CREATE TABLE t (id UInt64) ENGINE = MergeTree ORDER BY id', agent)
      equal((await d.insert('t', '{"id":0}', agent)).headers['x-sluice-ack'], 'spooled', 'without asking')
      equal((await d.insert('t', '{"id":1}', { ...agent, sluice_ack: 'stored' })).headers['x-sluice-ack'], 'stored', 'URL')
      equal((await d.insert("t SETTINGS sluice_ack = 'buffered'", '{"id":2}', agent)).headers['x-sluice-ack'], 'buffered', 'clause')
    },
  })
  fs.rmSync(dir, { recursive: true })
}

{
  const d = await Daemon.start({ args: set('spool.mode=always', 'async_insert_busy_timeout_min_ms=5', 'async_insert_busy_timeout_max_ms=10') })
  await test(d, {
    'always: every insert goes through the spool, and gets the level it asked for': async () => {
      await d.sql('CREATE TABLE t (id UInt64) ENGINE = MergeTree ORDER BY id')
      equal((await d.insert('t', '{"id":0}')).headers['x-sluice-ack'], 'stored', 'waits')
      equal((await d.insert('t', '{"id":1}', { wait_for_async_insert: 0 })).headers['x-sluice-ack'], 'spooled', 'does not wait')
      await d.sql('INSERT INTO t SELECT id + 10 FROM t WHERE id = 0')
      equal((await d.insert('t', '{"id":"x"}')).status, 400, 'is told')
      check(await d.metric('sluice_spool_sync_inserts_sum') >= 4, 'they were in the spool')
      await emptied(d)
      equal(await ids(d), [0, 1, 10], 'ids')
    },
  })
}

{
  const d = await Daemon.start({ args: [...neverFlush, ...set('spool.segment=64KiB')] })
  let sent = 600
  await test(d, {
    'damaged segments: all is noticed, the rest serves (P-10, P-11)': async () => {
      await d.sql('CREATE TABLE t (id UInt64) ENGINE = MergeTree ORDER BY id')
      await parallel(8, range(0, sent).map((id) => async () => equal((await d.insert('t', `{"id":${id}}`, spooled)).status, 200, `${id}`)))
      await d.kill()
      const files = segments(d)
      check(files.length > 2, `segments: ${files.length}`)
      // Not in the last one, whose end may be torn: nobody could tell that from damage.
      for (let i = 0; i < 20; i++) {
        const file = files[random(files.length - 1)]
        const bytes = fs.readFileSync(file)
        bytes[random(bytes.length)] ^= 1 << random(8)
        fs.writeFileSync(file, bytes)
      }
      const verified = await offline(d, 'verify')
      equal([verified.code, verified.json.ok, verified.json.damaged > 0], [1, false, true], 'spool verify')
      await d.launch()
      const { recovered, pending, lost } = await ledger(d)
      equal(recovered, sent, 'all are accounted for')
      check(lost > 0 && lost <= 20, `lost ${lost}`)
      check((await d.metric('sluice_damaged_files')) > 0 && fs.readdirSync(path.join(d.data, 'damaged')).length > 0, 'set aside')
      await d.logged(/spool damaged: file=\S+ offset=\d+ bytes=\d+ inserts=\d+/g)
      await emptied(d)
      const found = await ids(d)
      equal([found.length, new Set(found).size], [pending, pending], 'each of the others is there once')
    },
    'a segment that is garbage, one that is empty, one that is gone': async () => {
      await parallel(8, range(1000, 1600).map((id) => async () => equal((await d.insert('t', `{"id":${id}}`, spooled)).status, 200, `${id}`)))
      await d.kill()
      const files = segments(d)
      fs.writeFileSync(files[0], Buffer.alloc(5000, 7))
      fs.writeFileSync(files[1], '')
      await d.launch()
      await emptied(d)
      check((await ids(d)).length > 100, 'the rest is there')
      equal((await d.insert('t', '{"id":5000}', spooled)).status, 200, 'and it takes more')
      await emptied(d)
    },
  })
}

{
  const d = await Daemon.start({ args: [...neverFlush, ...set('spool.segment=64KiB', 'spool.bytes_max=1MiB')] })
  await test(d, {
    'a full spool refuses for now, and says that it was the spool (O-3)': async () => {
      await d.sql('CREATE TABLE t (id UInt64, s String) ENGINE = MergeTree ORDER BY id')
      const send = (id) => d.insert('t', JSON.stringify({ id, s: 'x'.repeat(30000) }), spooled)
      let id = 0, a
      while ((a = await send(id)).status === 200) check(++id < 100, 'it is full in the end')
      equal([a.status, a.headers['x-clickhouse-exception-code']], [503, '243'], a.text)
      equal([await d.metric('sluice_http_throttled_total{reason="spool"}'), await d.metric('sluice_http_throttled_total{reason="disk"}')], [1, 0], 'reason')
      await flush(d)
      await until(async () => (await send(id)).status === 200, 'room again')
    },
  })
}

{
  const d = await Daemon.start({ args: [...neverFlush, ...set('memory.max=48MiB')] })
  const body = (id) => JSON.stringify({ id, s: 'x'.repeat(500000) })
  await test(d, {
    'when memory is full, who does not wait is spooled instead of refused (O-1)': async () => {
      await d.sql('CREATE TABLE t (id UInt64, s String) ENGINE = MergeTree ORDER BY id SETTINGS parts_to_throw_insert = 1, parts_to_delay_insert = 1')
      equal((await d.insert('t', '{"id":1000}', { async_insert: 0 })).status, 200, 'one part, so that it takes no more')
      const levels = []
      for (let id = 0; id < 90; id++) {
        const a = await d.insert('t', body(id), { wait_for_async_insert: 0 })
        equal(a.status, 200, a.text)
        levels.push(a.headers['x-sluice-ack'])
      }
      equal([...new Set(levels)].sort(), ['buffered', 'spooled'], 'levels')
      await d.sql('ALTER TABLE t MODIFY SETTING parts_to_throw_insert = 3000')
      await flush(d) // waits for what was only on disk too
      equal(await ids(d), [...range(0, 90), 1000], 'ids')
    },
  })
}

{
  const d = await Daemon.start({ args: set('shutdown.deadline=2s', 'async_insert_busy_timeout_max_ms=10', 'async_insert_busy_timeout_min_ms=5') })
  await test(d, {
    'SIGTERM while the table takes nothing: what is left is spooled, waiters are told, exit status 5 (P-9, F-16)': async () => {
      await d.sql('CREATE TABLE t (id UInt64) ENGINE = MergeTree ORDER BY id SETTINGS parts_to_throw_insert = 1, parts_to_delay_insert = 1')
      equal((await d.insert('t', '{"id":0}')).status, 200, 'one part')
      equal((await d.insert('t', '{"id":1}', { wait_for_async_insert: 0 })).headers['x-sluice-ack'], 'buffered', 'level')
      equal((await d.insert('t', '{"id":2}', spooled)).headers['x-sluice-ack'], 'spooled', 'level')
      const waiting = d.insert('t', '{"id":3}')
      await until(async () => (await d.metric('sluice_flush_failures_total')) >= 3, 'three batches to be refused')
      d.child.kill('SIGTERM')
      const a = await waiting
      equal([a.status, a.headers['x-sluice-ack'], a.headers['x-clickhouse-exception-code']], [408, 'spooled', '159'], a.text)
      equal(await d.exit, { code: 5, signal: null }, 'exit')
    },
    'the next start has them': async () => {
      await d.launch()
      equal((await ledger(d)).recovered, 3, 'recovered')
      await d.sql('ALTER TABLE t MODIFY SETTING parts_to_throw_insert = 3000')
      await until(async () => (await ledger(d)).pending === 0, 'all to be stored')
      equal(await ids(d), [0, 1, 2, 3], 'ids')
    },
  })
}

{
  const dir = fs.mkdtempSync(path.join(os.tmpdir(), 'sluice-full-'))
  const mounted = spawnSync('mount', ['-t', 'tmpfs', '-o', 'size=12m', 'tmpfs', dir], { encoding: 'utf8' })
  process.on('exit', () => {
    if (mounted.status === 0) spawnSync('umount', ['-l', dir])
    fs.rmdirSync(dir)
  })
  if (mounted.status !== 0) {
    console.log(`a full disk is left out, it cannot be mounted (not root?): ${mounted.stderr ?? mounted.error}`)
  } else {
    const d = await Daemon.start({ dir, args: [...neverFlush, ...set('spool.segment=512KiB', 'spool.free_min=2MiB')] })
    const acknowledged = []
    await test(d, {
      'a full disk: refused for now, what was acknowledged is kept, and it heals (F-1)': async () => {
        await d.sql('CREATE TABLE t (id UInt64, s String) ENGINE = MergeTree ORDER BY id')
        let refused = 0
        for (let id = 0; refused < 5 && id < 1000; id++) {
          const a = await d.insert('t', JSON.stringify({ id, s: 'x'.repeat(30000) }), spooled)
          if (a.status === 200) acknowledged.push(id)
          else refused++
          if (a.status !== 200) {
            equal([a.status, a.headers['x-clickhouse-exception-code']], [503, '243'], a.text)
            check(Number(a.headers['retry-after']) >= 1, 'Retry-After')
          }
        }
        check(refused === 5 && acknowledged.length > 50, `${acknowledged.length} acknowledged, ${refused} refused`)
        await d.kill()
        await d.launch()
        await emptied(d)
        equal(await ids(d), acknowledged, 'ids')
        await until(async () => (await d.insert('t', '{"id":10000}', spooled)).status === 200, 'room again')
      },
    })
  }
}

// An unusable choice is said at the start.
{
  const { code, stderr } = await run(path.join(bin, 'sluiced'), ['--check-config', ...set('spool.mode=sometimes')])
  check(code !== 0 && /spool\.mode/.test(stderr), stderr)
}
