// /-/ready: no while inserts would be refused, and why; sluice_ready says the same.
import { Daemon, check, equal, test, until } from './lib.mjs'

const ready = async (d) => {
  const r = await d.admin('/-/ready')
  equal(await d.metric('sluice_ready'), r.status === 200 ? 1 : 0, 'sluice_ready')
  return [r.status, r.text]
}

const full = await Daemon.start({ args: ['--set', 'spool.free_min=1000TiB'] })
await test(full, {
  'a disk that has no room for inserts': async () => {
    const [status, text] = await ready(full)
    check(status === 503 && /^disk: \d+ bytes are free, inserts leave 1099511627776000\n$/.test(text), `${status} ${text}`)
    equal((await full.admin('/-/healthy')).status, 200, 'healthy all the same')
  },
})

const d = await Daemon.start({ args: ['--set', 'spool.bytes_max=1MiB', '--set', 'spool.segment=64KiB'] })
await test(d, {
  'a spool that is full, until it is not': async () => {
    await d.sql('CREATE TABLE t (s String) ENGINE = MergeTree ORDER BY s')
    equal(await ready(d), [200, 'ready\n'], 'at the start')
    const wait = { sluice_ack: 'spooled', async_insert_busy_timeout_min_ms: 3600000, async_insert_busy_timeout_max_ms: 3600000 }
    const row = JSON.stringify({ s: 'x'.repeat(20000) })
    let last
    for (let i = 0; i < 100; i++) {
      last = await d.insert('t', row, wait)
      if (last.status !== 200) break
    }
    equal(last.status, 503, 'no more room')
    const [status, text] = await ready(d)
    check(status === 503 && /^spool: \d+ of 1048576 bytes are used\n$/.test(text), `${status} ${text}`)
    await d.sql('SYSTEM FLUSH ASYNC INSERT QUEUE')
    await until(async () => (await d.admin('/-/ready')).status === 200, 'room in the spool')
    equal(await ready(d), [200, 'ready\n'], 'at the end')
  },
})

const small = await Daemon.start({ args: ['--set', 'memory.max=48MiB', '--set', 'spool.mode=off'] })
await test(small, {
  'buffers that are full, until they are not': async () => {
    await small.sql('CREATE TABLE t (s String) ENGINE = MergeTree ORDER BY s SETTINGS parts_to_throw_insert = 1, parts_to_delay_insert = 1')
    equal((await small.insert('t', '{"s":"one part, so that it takes no more"}', { async_insert: 0 })).status, 200, 'the part')
    const row = JSON.stringify({ s: 'x'.repeat(100000) })
    let last
    for (let i = 0; i < 1000; i++) {
      last = await small.insert('t', row, { wait_for_async_insert: 0 })
      if (last.status !== 200) break
    }
    equal([last.status, last.headers['x-clickhouse-exception-code']], [503, '241'], 'no more room')
    const [status, text] = await ready(small)
    check(status === 503 && /^memory: \d+ of \d+ bytes are used by inserts that wait\n$/.test(text), `${status} ${text}`)
    await small.sql('ALTER TABLE t MODIFY SETTING parts_to_throw_insert = 3000, parts_to_delay_insert = 3000')
    await small.sql('SYSTEM FLUSH ASYNC INSERT QUEUE')
    equal(await ready(small), [200, 'ready\n'], 'at the end')
  },
})
