// Backups under load: what was acknowledged before one began is in it, once, whether it waits in the spool, is a dead letter
// or is stored; kill -9 in the middle of one leaves nothing behind. (P-14)
import fs from 'node:fs'
import path from 'node:path'
import { Daemon, bin, check, equal, run, test, until } from './lib.mjs'

const d = await Daemon.start({ args: ['--set', 'async_insert_busy_timeout_min_ms=300', '--set', 'async_insert_busy_timeout_max_ms=300'] })
const sluice = async (...args) => {
  const { code, stdout, stderr } = await run(path.join(bin, 'sluice'), [...args, '--url', d.url, '--admin-url', d.adminUrl])
  return { code, out: stdout, err: stderr }
}

const acked = []
let letters = 0, next = 0, loading = true

// Rows without a time and without a token: nothing but the spool's own numbers tells one of them from another.
async function client(number) {
  while (loading) {
    const id = next++
    if (id % 50 === 0) {
      const a = await d.insert('t', `{"id":"none ${id}"}`, { sluice_ack: 'spooled', input_format_allow_errors_num: 0 })
      letters += a.status === 200
      continue
    }
    const a = await d.insert('t', `{"id":${id}}`, number % 2 ? { sluice_ack: 'spooled' } : {})
    equal(a.status, 200, `${id}: ${a.text}`)
    acked.push(id)
  }
}

async function restored(name) {
  const dir = path.join(d.dir, `restored-${name}`)
  const restore = await sluice('restore', path.join(d.data, 'backups', name), dir)
  equal([restore.code, restore.err], [0, ''], 'restore')
  const found = JSON.parse((await sluice('verify', dir, '-o', 'json')).out)
  equal([found.ok, found.findings], [true, []], 'verify')
  const other = await Daemon.start({ dir: fs.mkdtempSync(path.join(d.dir, 'other-')), args: ['--data-dir', dir] })
  await until(async () => {
    await other.sql('SYSTEM FLUSH ASYNC INSERT QUEUE')
    return (await other.metric('sluice_inserts_pending')) === 0
  }, 'the spool to be empty')
  const rows = await other.rows('SELECT id, count() FROM t GROUP BY id')
  const kept = await other.rows('SELECT DISTINCT token FROM system.dead_letter_queue') // after a kill an insert may be two letters, under one token
  await other.close()
  return { spooled: found.spooled, counts: new Map(rows.map(([id, n]) => [Number(id), Number(n)])), letters: kept.length }
}

await test(d, {
  'what was acknowledged before a backup began is in it, once': async () => {
    await d.sql('CREATE TABLE t (id UInt64) ENGINE = MergeTree ORDER BY id')
    const clients = [0, 1, 2, 3, 4, 5, 6, 7].map(client)
    let spooled = 0
    for (const name of ['a', 'b', 'c', 'd']) {
      const size = acked.length
      await until(() => acked.length > size + 300, 'some load')
      if (name === 'd')
        await d.sql('OPTIMIZE TABLE t FINAL')
      const before = [...acked], lettersBefore = Number((await d.rows('SELECT count() FROM system.dead_letter_queue'))[0][0])
      const taken = await sluice('backup', name)
      equal([taken.code, taken.err], [0, ''], 'backup')
      const got = await restored(name)
      const lost = before.filter((id) => !got.counts.has(id)), doubled = [...got.counts].filter(([, n]) => n !== 1)
      equal([lost, doubled], [[], []], `backup ${name}`)
      check(got.letters >= lettersBefore, `${got.letters} letters, ${lettersBefore} before`)
      spooled += got.spooled
    }
    loading = false
    await Promise.all(clients)
    check(spooled > 0, 'the spool was never empty') // else nothing above was about it
  },
  'kill -9 in the middle of one leaves nothing behind': async () => {
    const backups = path.join(d.data, 'backups')
    const taking = sluice('backup', 'e')
    await until(() => fs.existsSync(path.join(backups, '_tmp_e')) || fs.existsSync(path.join(backups, 'e')), 'its begin')
    await d.kill()
    await taking
    await d.launch()
    equal(fs.readdirSync(backups).filter((name) => name.startsWith('_')), [], 'temporary ones')
    equal((await sluice('backup', 'f')).code, 0, 'the next one')
    const got = await restored('f')
    equal([acked.filter((id) => !got.counts.has(id)), [...got.counts].filter(([, n]) => n !== 1)], [[], []], 'all')
    equal(got.letters, letters, 'letters')
  },
})
