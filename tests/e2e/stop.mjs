// SIGTERM with 1,000 waiters parked: every one is answered with what is true, exit 0, all rows there after a restart.
import { Daemon, check, equal, faults, parallel, test, until } from './lib.mjs'

const waiters = 1000
// A flush that would come only in a minute: the stop has to bring it.
const d = await Daemon.start({ args: ['--set', 'async_insert_busy_timeout_max_ms=60000', '--set', 'async_insert_busy_timeout_min_ms=60000',
  '--set', 'async_insert_max_query_number=1000000'] })
await test(d, {
  '1,000 waiters are answered': async () => {
    await d.sql('CREATE TABLE t (id UInt64) ENGINE = MergeTree ORDER BY id')
    d.agent.maxSockets = waiters
    const answers = Array.from({ length: waiters }, (_, id) => d.insert('t', `{"id":${id}}`))
    await until(async () => (await d.metric('sluice_buffer_inserts')) === waiters, 'all inserts to be buffered')
    const begin = Date.now()
    d.child.kill('SIGTERM')
    for (const a of await Promise.all(answers)) {
      check(a.status === 200, `status ${a.status}: ${a.text}`)
      equal(a.headers['x-sluice-ack'], 'stored', 'X-Sluice-Ack')
    }
    equal(await d.exit, { code: 0, signal: null }, 'exit')
    console.log(`answered and stopped after ${Date.now() - begin} ms`)
  },
  'the rows are there after a restart': async () => {
    await d.launch()
    equal(await d.rows('SELECT count(), min(id), max(id) FROM t'), [[waiters, 0, waiters - 1]], 'rows')
  },
  'an idle daemon stops at once, twice told too': async () => {
    d.child.kill('SIGTERM')
    d.child.kill('SIGTERM')
    equal(await d.exit, { code: 0, signal: null }, 'exit')
    await d.launch()
  },
  'what was only buffered is stored by a stop': async () => {
    const a = await d.insert('t', '{"id":5000}', { wait_for_async_insert: 0 })
    equal(a.headers['x-sluice-ack'], 'buffered', 'X-Sluice-Ack')
    await d.restart()
    equal(await d.rows('SELECT count() FROM t WHERE id = 5000'), [[1]], 'the row')
  },
})

// Each of many shapes would be a part of its own, on a disk where that takes a fifth of a second.
const slow = faults && await Daemon.start({ args: ['--set', 'shutdown.deadline=1s'], env: { LD_PRELOAD: faults, FAULT_SYNC_MS: '200' } })
if (slow)
  await test(slow, {
    'P-9: with more shapes than there is time for, a stop ends in time, and the rest comes back': async () => {
      const shapes = 3000
      await slow.sql('CREATE TABLE t (id UInt64) ENGINE = MergeTree ORDER BY id')
      await parallel(32, Array.from({ length: shapes }, (_, id) => async () => equal((await slow.insert('t', `{"id":${id}}`, {
        wait_for_async_insert: 0, input_format_allow_errors_num: id, async_insert_busy_timeout_max_ms: 600000,
        async_insert_use_adaptive_busy_timeout: 0,
      })).status, 200, 'an insert')))
      const begin = Date.now()
      equal(await slow.stop(), 5, 'exit status: some are only spooled')
      const spooled = Number(/inserts_spooled=(\d+)/.exec(slow.log)[1])
      check(spooled > 0 && spooled <= shapes, `${spooled} spooled`)
      check(Date.now() - begin < shapes * 100, 'half of what one part after the other would take')
      slow.env = {}
      await slow.launch()
      await until(async () => {
        await slow.sql('SYSTEM FLUSH ASYNC INSERT QUEUE')
        return (await slow.rows('SELECT count(), uniqExact(id) FROM t')).join() === `${shapes},${shapes}`
      }, 'all rows')
    },
  })
