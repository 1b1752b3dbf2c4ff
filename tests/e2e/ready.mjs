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
